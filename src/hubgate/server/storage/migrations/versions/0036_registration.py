"""Adds apps that register themselves, and tokens with which they may."""

import sqlalchemy as sa
from alembic import op

revision = "0036"
down_revision = "0035"


def upgrade() -> None:
    op.add_column("apps", sa.Column("self_registered", sa.BigInteger, nullable=False, server_default="0"))
    op.create_table(
        "app_registrations",
        sa.Column("client_id", sa.Text, sa.ForeignKey("apps.client_id", ondelete="CASCADE"), primary_key=True),
        sa.Column("key", sa.LargeBinary, nullable=False),
        sa.Column("used_at", sa.BigInteger, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_app_registrations_used_at", "app_registrations", ["used_at"])
    op.create_table(
        "registration_tokens",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("key", sa.LargeBinary, nullable=False),
        sa.Column("last_four", sa.Text, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("last_used_at", sa.BigInteger),
        sa.Column("registrations", sa.BigInteger, nullable=False),
    )
