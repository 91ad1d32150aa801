"""Adds collections and their items."""

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"


def upgrade() -> None:
    op.create_table(
        "collections",
        sa.Column("id", sa.Text, primary_key=True),
        *(_text(name) for name in ("owner_kind", "owner_id", "title", "title_key", "description")),
        *(_text(name) for name in ("search_text", "theme")),
        *(_number(name) for name in ("private", "position", "created_at", "updated_at")),
    )
    op.create_index("ix_collections_owner_id_title_key", "collections", ["owner_id", "title_key"], unique=True)
    op.create_index("ix_collections_owner_id_position", "collections", ["owner_id", "position"])
    op.create_index("ix_collections_updated_at_id", "collections", ["updated_at", "id"])
    op.create_table(
        "collection_items",
        sa.Column("id", sa.Text, primary_key=True),
        _reference("collection_id", "collections", nullable=False),
        _reference("repo_id", "repos", nullable=True),
        _reference("linked_id", "collections", nullable=True),
        _text("note"),
        _number("position"),
    )
    for columns, unique in (
        (["collection_id", "repo_id"], True),
        (["collection_id", "linked_id"], True),
        (["collection_id", "position"], False),
        (["repo_id"], False),
        (["linked_id"], False),
    ):
        op.create_index(f"ix_collection_items_{'_'.join(columns)}", "collection_items", columns, unique=unique)


def _text(name: str) -> "sa.Column[str]":
    return sa.Column(name, sa.Text, nullable=False)


def _number(name: str) -> "sa.Column[int]":
    return sa.Column(name, sa.BigInteger, nullable=False)


def _reference(name: str, table: str, *, nullable: bool) -> "sa.Column[str]":
    return sa.Column(name, sa.Text, sa.ForeignKey(f"{table}.id", ondelete="CASCADE"), nullable=nullable)
