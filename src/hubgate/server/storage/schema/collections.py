"""Tables of collections and their items."""

from sqlalchemy import BigInteger, Column, Index, Table, Text

from hubgate.server.storage.schema.base import metadata, owner

# The transaction that deletes an owner also deletes the owner's collections.
collections = Table(
    "collections",
    metadata,
    Column("id", Text, primary_key=True),
    # "user" or "org".
    Column("owner_kind", Text, nullable=False),
    Column("owner_id", Text, nullable=False),
    Column("title", Text, nullable=False),
    # The case-folded title, unique for an owner.
    Column("title_key", Text, nullable=False),
    Column("description", Text, nullable=False),
    # Title and description, case-folded here because the engines fold case differently.
    Column("search_text", Text, nullable=False),
    Column("theme", Text, nullable=False),
    Column("private", BigInteger, nullable=False),
    # The order of an owner's collections.
    Column("position", BigInteger, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    Index(None, "owner_id", "title_key", unique=True),
    Index(None, "owner_id", "position"),
    Index(None, "updated_at", "id"),
)

# An item is a repo or another collection: either `repo_id` or `linked_id` is set. Deleting the target deletes the item.
collection_items = Table(
    "collection_items",
    metadata,
    Column("id", Text, primary_key=True),
    owner("collections", "collection_id"),
    owner("repos", "repo_id", nullable=True),
    owner("collections", "linked_id", nullable=True),
    Column("note", Text, nullable=False),
    Column("position", BigInteger, nullable=False),
    Index(None, "collection_id", "repo_id", unique=True),
    Index(None, "collection_id", "linked_id", unique=True),
    Index(None, "collection_id", "position"),
    Index(None, "repo_id"),
    Index(None, "linked_id"),
)
