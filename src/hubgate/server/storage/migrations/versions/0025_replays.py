"""Adds replays of many deliveries, attempts of each delivery process, and an index on failing webhooks."""

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"


def upgrade() -> None:
    op.create_table(
        "replays",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("webhook_id", sa.Text, sa.ForeignKey("webhooks.id", ondelete="CASCADE"), nullable=False),
        sa.Column("since", sa.BigInteger, nullable=False),
        sa.Column("states", sa.Text, nullable=False),
        sa.Column("picked", sa.Text),
        sa.Column("visible", sa.Text),
        sa.Column("rate", sa.BigInteger, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("total", sa.BigInteger, nullable=False),
        sa.Column("queued", sa.BigInteger, nullable=False),
        sa.Column("done", sa.BigInteger, nullable=False),
        sa.Column("position", sa.BigInteger, nullable=False),
        sa.Column("last_position", sa.BigInteger, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("ended_at", sa.BigInteger),
    )
    running = sa.text("state = 'running'")
    op.create_index(
        "ix_replays_running", "replays", ["webhook_id", "id"], sqlite_where=running, postgresql_where=running
    )
    op.create_index("ix_replays_webhook_id_id", "replays", ["webhook_id", "id"])
    op.add_column("senders", sa.Column("attempts", sa.BigInteger, nullable=False, server_default="0"))
    failing = sa.text("failing_since IS NOT NULL")
    op.create_index(
        "ix_webhooks_failing", "webhooks", ["failing_since"], sqlite_where=failing, postgresql_where=failing
    )
