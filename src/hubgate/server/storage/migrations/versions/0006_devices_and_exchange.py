"""Adds device codes, and the time from which exchanged tokens are valid."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.add_column("organizations", _since("plan_since"))
    op.add_column("apps", _since("exchange_since"))
    op.drop_index("ix_app_tokens_org_id", "app_tokens")
    op.create_index("ix_app_tokens_org_id_client_id_created_at", "app_tokens", ["org_id", "client_id", "created_at"])
    _device_codes()


def _since(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, nullable=False, server_default="0")


def _owner(table: str, column: str, key: str = "id") -> sa.Column[str]:
    return sa.Column(column, sa.Text, sa.ForeignKey(f"{table}.{key}", ondelete="CASCADE"), nullable=True)


def _device_codes() -> None:
    op.create_table(
        "device_codes",
        sa.Column("key", sa.LargeBinary, primary_key=True),
        sa.Column("user_code", sa.LargeBinary, nullable=False),
        sa.Column("client_id", sa.Text, nullable=False),
        _owner("apps", "app_id", "client_id"),
        sa.Column("scopes", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        _owner("users", "user_id"),
        _owner("consents", "consent_id"),
        sa.Column("auth_time", sa.BigInteger, nullable=True),
        sa.Column("interval", sa.BigInteger, nullable=False),
        sa.Column("polled_at", sa.BigInteger, nullable=True),
        sa.Column("ip", sa.Text, nullable=False),
        sa.Column("user_agent", sa.Text, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("expires_at", sa.BigInteger, nullable=False),
        sa.UniqueConstraint("user_code", name="uq_device_codes_user_code"),
        sqlite_with_rowid=False,
    )
    for column in ("app_id", "user_id", "consent_id", "expires_at"):
        op.create_index(f"ix_device_codes_{column}", "device_codes", [column])
