"""Indexes a webhook's backlog in the order of delivery, and replaces the turn column with row locks."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"

_WAITING = sa.text("state IN ('pending', 'retrying', 'parked') AND lease_until IS NULL")


def upgrade() -> None:
    op.drop_index("ix_deliveries_alive", "deliveries")
    op.create_index(
        "ix_deliveries_waiting",
        "deliveries",
        ["webhook_id", "due_at", "seq"],
        sqlite_where=_WAITING,
        postgresql_where=_WAITING,
    )
    op.drop_column("webhooks", "turn")
