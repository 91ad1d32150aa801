"""Adds shards of webhooks, the processes that own them, and work on backlogs; removes leases of deliveries.

A delivery that was in flight waits until its lease would have expired. Processes of earlier versions fail at their next
statement, because the columns of leases are gone.
"""

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"

_ALIVE = "state IN ('pending', 'retrying', 'parked')"
_OLD_INDEXES = ("waiting", "beside", "tried", "leased", "created_at")
_FIRST_ATTEMPT = {
    "first_at": sa.BigInteger,
    "first_url": sa.Text,
    "signature": sa.Text,
    "first_status": sa.BigInteger,
    "duration_ms": sa.BigInteger,
    "error": sa.Text,
    "response": sa.LargeBinary,
}


def upgrade() -> None:
    op.execute("UPDATE deliveries SET due_at = lease_until WHERE lease_until IS NOT NULL")
    for name in _OLD_INDEXES:
        op.drop_index(f"ix_deliveries_{name}", "deliveries")
    op.drop_index("ix_webhooks_next_due_at", "webhooks")
    for table, column in (("deliveries", "lease_until"), ("deliveries", "lease_token"), ("webhooks", "next_due_at")):
        op.drop_column(table, column)
    for name, kind in _FIRST_ATTEMPT.items():
        op.add_column("deliveries", sa.Column(name, kind))
    op.add_column("webhooks", sa.Column("resets", sa.BigInteger, nullable=False, server_default="0"))
    op.add_column("webhooks", sa.Column("skip_through", sa.BigInteger, nullable=False, server_default="0"))
    op.add_column("webhooks", sa.Column("skip_reason", sa.Text))
    op.add_column("webhooks", sa.Column("requeue_since", sa.BigInteger))
    backlog = sa.text("skip_through > 0 OR requeue_since IS NOT NULL")
    op.create_index("ix_webhooks_backlogs", "webhooks", ["id"], sqlite_where=backlog, postgresql_where=backlog)
    _partial("replays", f"{_ALIVE} AND attempts = 0 AND replay_of <> ''")
    _partial("retries", f"{_ALIVE} AND attempts > 0")
    op.create_table(
        "senders",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("heartbeat", sa.BigInteger, nullable=False),
        sa.Column("machine", sa.Text, nullable=False),
    )
    shards = op.create_table(
        "shards",
        sa.Column("shard", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("sender_id", sa.Text),
    )
    op.bulk_insert(shards, [{"shard": shard, "sender_id": None} for shard in range(256)])
    op.create_table(
        "wakes",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("shard", sa.BigInteger, nullable=False),
        sa.Column("webhook_id", sa.Text, nullable=False),
    )


def _partial(name: str, condition: str) -> None:
    where = sa.text(condition)
    columns = ["webhook_id", "due_at", "seq"]
    op.create_index(f"ix_deliveries_{name}", "deliveries", columns, sqlite_where=where, postgresql_where=where)
