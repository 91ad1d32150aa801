"""The table of requests for access to gated repos."""

from sqlalchemy import BigInteger, Column, Index, Table, Text

from hubgate.server.storage.schema.base import metadata, owner

# One row per repo and user who asked for access, or to whom a writer granted it.
access_requests = Table(
    "access_requests",
    metadata,
    owner("repos", "repo_id", key=True),
    owner("users", "user_id", key=True),
    Column("id", Text, nullable=False),
    # "pending", "accepted" or "rejected".
    Column("status", Text, nullable=False),
    # 1 if the user asked, which shares the user's e-mail address with the repo's writers.
    Column("asked", BigInteger, nullable=False),
    # JSON: the answers to the questions in the repo's card.
    Column("answers", Text, nullable=False),
    # Why the request was rejected.
    Column("reason", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("reviewed_at", BigInteger),
    # The user who decided, who may have been deleted; null before a decision and for an automatic gate.
    Column("reviewer_id", Text),
    Index(None, "id", unique=True),
    Index(None, "repo_id", "status", "created_at", "id"),
    Index(None, "user_id"),
    sqlite_with_rowid=False,
)
