"""Adds accounts, organizations, personal tokens, mail and the audit log."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    _accounts()
    _organizations()
    _credentials()
    _mails()
    _audit()


def _text(name: str, *, key: bool = False, nullable: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.Text, primary_key=key, nullable=nullable)


def _number(name: str, *, key: bool = False, nullable: bool = False) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, primary_key=key, nullable=nullable, autoincrement=False)


def _owner(table: str, column: str, *, key: bool = False, nullable: bool = False) -> sa.Column[str]:
    owner = sa.ForeignKey(f"{table}.id", ondelete="CASCADE")
    return sa.Column(column, sa.Text, owner, primary_key=key, nullable=nullable)


def _index(table: str, *columns: str) -> None:
    op.create_index(f"ix_{table}_{'_'.join(columns)}", table, list(columns))


def _accounts() -> None:
    op.create_table("milestones", _text("name", key=True), _number("reached_at"), sqlite_with_rowid=False)
    op.create_table(
        "names", _text("key", key=True), _text("kind"), _text("owner_id"), _number("current"), sqlite_with_rowid=False
    )
    _index("names", "owner_id")
    op.create_table(
        "users",
        _text("id", key=True),
        _text("name"),
        _text("fullname"),
        _text("email"),
        _number("email_verified_at", nullable=True),
        _text("password_hash", nullable=True),
        _text("website"),
        _number("operator"),
        _number("can_pay"),
        _number("created_at"),
        _number("disabled_at", nullable=True),
        sa.UniqueConstraint("email", name="uq_users_email"),
    )


def _organizations() -> None:
    op.create_table(
        "organizations",
        _text("id", key=True),
        _text("name"),
        _text("fullname"),
        _text("website"),
        _text("plan"),
        _number("can_pay"),
        _number("created_at"),
        _number("members_version"),
    )
    op.create_table(
        "memberships",
        _owner("organizations", "org_id", key=True),
        _owner("users", "user_id", key=True),
        _number("role"),
        _number("joined_at"),
        sqlite_with_rowid=False,
    )
    _index("memberships", "user_id")
    op.create_table(
        "invitations",
        _text("id", key=True),
        sa.Column("key", sa.LargeBinary, nullable=False),
        _owner("organizations", "org_id", nullable=True),
        _text("email", nullable=True),
        _owner("users", "user_id", nullable=True),
        _number("role"),
        _text("invited_by", nullable=True),
        _number("created_at"),
        _number("expires_at"),
        sa.UniqueConstraint("key", name="uq_invitations_key"),
    )
    for column in ("org_id", "user_id", "email", "expires_at"):
        _index("invitations", column)


def _credentials() -> None:
    op.create_table(
        "sessions",
        sa.Column("key", sa.LargeBinary, primary_key=True),
        _text("id"),
        _owner("users", "user_id"),
        _number("created_at"),
        _number("last_used_at"),
        _text("ip"),
        _text("user_agent"),
        sa.UniqueConstraint("id", name="uq_sessions_id"),
    )
    _index("sessions", "user_id")
    _index("sessions", "last_used_at")
    op.create_table(
        "links",
        sa.Column("key", sa.LargeBinary, primary_key=True),
        _text("purpose"),
        _owner("users", "user_id"),
        _text("email"),
        _number("expires_at"),
    )
    _index("links", "user_id")
    _index("links", "expires_at")
    op.create_table(
        "access_tokens",
        sa.Column("key", sa.LargeBinary, primary_key=True),
        _text("id"),
        _owner("users", "user_id"),
        _text("name"),
        _text("role"),
        _text("last_four"),
        _number("created_at"),
        _number("last_used_at", nullable=True),
        sa.UniqueConstraint("id", name="uq_access_tokens_id"),
    )
    _index("access_tokens", "user_id")


def _mails() -> None:
    op.create_table(
        "mails",
        _text("id", key=True),
        sa.Column("sealed", sa.LargeBinary, nullable=False),
        _number("attempts"),
        _number("due_at"),
        _number("expires_at"),
    )
    _index("mails", "due_at")


def _audit() -> None:
    op.create_table(
        "audit_entries",
        _text("id", key=True),
        _text("org_id"),
        _number("created_at"),
        _text("type"),
        _text("message"),
        _text("author_id", nullable=True),
        _text("author_name"),
        _text("ip", nullable=True),
        _text("user_agent", nullable=True),
        _text("data", nullable=True),
        _text("token", nullable=True),
        _text("oauth", nullable=True),
        _text("token_id", nullable=True),
        _number("batch", nullable=True),
        _number("position", nullable=True),
    )
    _index("audit_entries", "org_id", "created_at", "id")
    _index("audit_entries", "org_id", "batch", "position")
    unsealed = sa.text("batch IS NULL")
    op.create_index(
        "ix_audit_entries_unsealed",
        "audit_entries",
        ["batch", "org_id", "created_at", "id"],
        sqlite_where=unsealed,
        postgresql_where=unsealed,
    )
    op.create_table(
        "audit_batches",
        _text("org_id", key=True),
        _number("seq", key=True),
        _number("entries"),
        sa.Column("hash", sa.LargeBinary, nullable=False),
        _number("sealed_at"),
        _number("dropped_at", nullable=True),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "audit_heads",
        _text("org_id", key=True),
        _number("seq"),
        sa.Column("hash", sa.LargeBinary, nullable=False),
        _number("dropped"),
        _number("broken", nullable=True),
        sa.Column("mac", sa.LargeBinary, nullable=False),
        sqlite_with_rowid=False,
    )
