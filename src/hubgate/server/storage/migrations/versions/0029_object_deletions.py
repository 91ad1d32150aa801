"""Adds the marks of stored content that is about to be deleted."""

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision = "0028"


def upgrade() -> None:
    op.create_table(
        "object_deletions",
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("marked_at", sa.BigInteger, nullable=False),
        sa.Column("is_deleting", sa.BigInteger, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_object_deletions_kind_marked_at", "object_deletions", ["kind", "marked_at"])
