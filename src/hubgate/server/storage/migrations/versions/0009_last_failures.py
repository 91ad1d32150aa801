"""Stores when a webhook's last attempt failed: days without attempts do not count as days of failure."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.add_column("webhooks", sa.Column("failed_at", sa.BigInteger))
