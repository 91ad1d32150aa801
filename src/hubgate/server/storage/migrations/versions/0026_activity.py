"""Adds the hourly roll-up of deliveries, and indexes on events for dry runs of webhooks."""

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"

_SUMS = ("total", "delivered", "failed", "retrying", "waiting", "skipped")


def upgrade() -> None:
    op.create_table(
        "delivery_hours",
        sa.Column("webhook_id", sa.Text, sa.ForeignKey("webhooks.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("hour", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("first_seq", sa.BigInteger, nullable=False),
        sa.Column("last_seq", sa.BigInteger, nullable=False),
        sa.Column("next_at", sa.BigInteger),
        *(sa.Column(name, sa.BigInteger, nullable=False, server_default="0") for name in _SUMS),
        sa.Column("durations", sa.Text),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_delivery_hours_webhook_id_last_seq", "delivery_hours", ["webhook_id", "last_seq"])
    _partial("ix_delivery_hours_due", "delivery_hours", "next_at", "next_at IS NOT NULL")
    op.create_index("ix_events_owner_id_created_at", "events", ["owner_id", "created_at"])
    _partial("ix_events_moves", "events", "created_at", "scope = 'repo' AND action = 'move'")


def _partial(name: str, table: str, column: str, condition: str) -> None:
    where = sa.text(condition)
    op.create_index(name, table, [column], sqlite_where=where, postgresql_where=where)
