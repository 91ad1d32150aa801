"""Adds rate limits and leases."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_table(
        "rate_limits",
        sa.Column("bucket", sa.LargeBinary, primary_key=True),
        sa.Column("hits", sa.BigInteger, nullable=False),
        sa.Column("resets_at", sa.BigInteger, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_rate_limits_resets_at", "rate_limits", ["resets_at"])
    op.create_table(
        "leases",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("holder", sa.Text, nullable=False),
        sa.Column("expires_at", sa.BigInteger, nullable=False),
        sqlite_with_rowid=False,
    )
