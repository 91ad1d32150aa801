"""Adds the claims that apps request for ID tokens and userinfo."""

import sqlalchemy as sa
from alembic import op

revision = "0034"
down_revision = "0033"


def upgrade() -> None:
    op.add_column("apps", sa.Column("groups_claim", sa.BigInteger, nullable=False, server_default="0"))
    for table in ("codes", "app_tokens", "refresh_tokens"):
        op.add_column(table, sa.Column("claims", sa.Text, nullable=False, server_default=sa.text("''")))
