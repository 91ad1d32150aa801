"""Stores the target servers of tokens, and the details of approved consent pages."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    for table in ("codes", "app_tokens", "device_codes", "refresh_tokens"):
        op.add_column(table, sa.Column("resources", sa.Text, nullable=False, server_default=sa.text("''")))
    op.add_column("consents", sa.Column("other_scopes", sa.Text, nullable=False, server_default=sa.text("''")))
    op.create_table(
        "consent_approvals",
        sa.Column("consent_id", sa.Text, sa.ForeignKey("consents.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("shown", sa.Text, primary_key=True),
        sa.Column("resources", sa.Text, nullable=False),
        sa.Column("redirect_uri", sa.Text, nullable=False),
        sa.Column("scopes", sa.Text, nullable=False),
        sa.Column("approved_at", sa.BigInteger, nullable=False),
        sqlite_with_rowid=False,
    )
    # All existing consents are for this hub. For apps without a secret on a loopback address, users are asked again.
    op.execute(
        """
        INSERT INTO consent_approvals (consent_id, shown, resources, redirect_uri, scopes, approved_at)
        SELECT id, '', '', '', scopes, updated_at FROM consents
        """
    )
