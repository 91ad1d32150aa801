"""Adds the stored figure of the bytes that an owner with a quota uses."""

import sqlalchemy as sa
from alembic import op

revision = "0031"
down_revision = "0030"


def upgrade() -> None:
    op.create_table(
        "storage_used",
        sa.Column("owner_id", sa.Text, primary_key=True),
        sa.Column("bytes", sa.BigInteger, nullable=False),
        sa.Column("counted_at", sa.BigInteger, nullable=False),
        sqlite_with_rowid=False,
    )
