"""Adds webhooks, watches, deliveries, attempts and the fan-out progress of events."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"

_UNFANNED = sa.text("fanned_at IS NULL")
_ALIVE = sa.text("state IN ('pending', 'retrying', 'parked')")
_LEASED = sa.text("lease_until IS NOT NULL")


def upgrade() -> None:
    op.add_column("events", sa.Column("depth", sa.BigInteger, nullable=False, server_default="0"))
    op.add_column("events", sa.Column("fan_cursor", sa.Text, nullable=True))
    _partial("ix_events_unfanned", "events", ["repo_id", "repo_seq"], _UNFANNED)
    _webhooks()
    _watches()
    _deliveries()
    _attempts()


def _partial(name: str, table: str, columns: list[str], where: sa.TextClause) -> None:
    op.create_index(name, table, columns, sqlite_where=where, postgresql_where=where)


def _index(table: str, *columns: str) -> None:
    op.create_index(f"ix_{table}_{'_'.join(columns)}", table, list(columns))


def _text(name: str, *, key: bool = False, nullable: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.Text, primary_key=key, nullable=nullable)


def _number(name: str, *, key: bool = False, nullable: bool = False) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, primary_key=key, nullable=nullable, autoincrement=False)


def _bytes(name: str, *, nullable: bool = False) -> sa.Column[bytes]:
    return sa.Column(name, sa.LargeBinary, nullable=nullable)


def _owner(table: str, column: str, *, key: bool = False, nullable: bool = False) -> sa.Column[str]:
    reference = sa.ForeignKey(f"{table}.id", ondelete="CASCADE")
    return sa.Column(column, sa.Text, reference, primary_key=key, nullable=nullable)


def _webhooks() -> None:
    op.create_table(
        "webhooks",
        _text("id", key=True),
        _owner("users", "user_id", nullable=True),
        _owner("organizations", "org_id", nullable=True),
        _text("url", nullable=True),
        _text("domains"),
        _bytes("secret", nullable=True),
        _bytes("old_secret", nullable=True),
        _number("old_secret_until", nullable=True),
        _bytes("private_key"),
        _text("public_key"),
        _number("ordered"),
        _text("state"),
        _number("last_seq"),
        _number("quota_from"),
        _number("quota_used"),
        _number("failing_since", nullable=True),
        _number("warned_at", nullable=True),
        _number("suspended_at", nullable=True),
        _number("failures"),
        _number("closed_until"),
        _number("next_due_at", nullable=True),
        _text("turn", nullable=True),
        _number("last_trigger_at", nullable=True),
        _number("created_at"),
    )
    for column in ("user_id", "org_id", "next_due_at"):
        _index("webhooks", column)


def _watches() -> None:
    op.create_table(
        "watches",
        _owner("webhooks", "webhook_id", key=True),
        _text("type", key=True),
        _text("key", key=True),
        _text("name"),
        _text("target_id", nullable=True),
        _number("position"),
        sqlite_with_rowid=False,
    )
    _index("watches", "target_id", "webhook_id")
    _index("watches", "key", "target_id")


def _deliveries() -> None:
    op.create_table(
        "deliveries",
        _text("id", key=True),
        _owner("webhooks", "webhook_id"),
        _text("event_id"),
        _text("replay_of"),
        _number("seq"),
        _text("repo_id"),
        _number("repo_seq"),
        _text("repo_type"),
        _text("repo_name"),
        _text("scope"),
        _text("action"),
        _number("depth"),
        _bytes("body", nullable=True),
        _number("is_test"),
        _text("state"),
        _text("reason"),
        _number("attempts"),
        _number("status", nullable=True),
        _number("due_at", nullable=True),
        _number("tried_at", nullable=True),
        _number("lease_until", nullable=True),
        _text("lease_token", nullable=True),
        _number("created_at"),
        _number("ended_at", nullable=True),
    )
    once = ["event_id", "webhook_id", "replay_of"]
    op.create_index("uq_deliveries_event_id_webhook_id_replay_of", "deliveries", once, unique=True)
    op.create_index("uq_deliveries_webhook_id_seq", "deliveries", ["webhook_id", "seq"], unique=True)
    _partial("ix_deliveries_alive", "deliveries", ["webhook_id", "due_at"], _ALIVE)
    _partial("ix_deliveries_lanes", "deliveries", ["webhook_id", "repo_id", "repo_seq"], _ALIVE)
    _partial("ix_deliveries_leased", "deliveries", ["webhook_id", "lease_until"], _LEASED)
    _index("deliveries", "created_at")


def _attempts() -> None:
    op.create_table(
        "attempts",
        _owner("deliveries", "delivery_id", key=True),
        _number("number", key=True),
        _number("at"),
        _text("url"),
        _text("signature"),
        _number("status", nullable=True),
        _number("duration_ms"),
        _text("error"),
        _bytes("response"),
        sqlite_with_rowid=False,
    )
