"""Adds expiry, scopes and limits of personal tokens."""

import sqlalchemy as sa
from alembic import op

revision = "0038"
down_revision = "0037"


def upgrade() -> None:
    op.add_column("access_tokens", sa.Column("last_used_ip", sa.Text))
    op.add_column("access_tokens", sa.Column("expires_at", sa.BigInteger))
    op.add_column("access_tokens", sa.Column("expired", sa.BigInteger, nullable=False, server_default="0"))
    op.add_column("access_tokens", sa.Column("expiry_notified_at", sa.BigInteger))
    op.add_column("access_tokens", sa.Column("scopes", sa.Text, nullable=False, server_default=sa.text("''")))
    op.create_index("ix_access_tokens_expires_at", "access_tokens", ["expires_at"])
    op.create_table(
        "token_limits",
        sa.Column("token_id", sa.Text, sa.ForeignKey("access_tokens.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("target_id", sa.Text, primary_key=True),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("scopes", sa.Text, nullable=False),
        sa.Column("joined_at", sa.BigInteger),
        sqlite_with_rowid=False,
    )
