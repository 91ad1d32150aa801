"""Adds apps, consents, authorization codes and app tokens."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    _apps()
    _consents()
    _tokens()


def _text(name: str, *, key: bool = False, nullable: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.Text, primary_key=key, nullable=nullable)


def _number(name: str, *, nullable: bool = False) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, nullable=nullable)


def _blob(name: str, *, key: bool = False, nullable: bool = False) -> sa.Column[bytes]:
    return sa.Column(name, sa.LargeBinary, primary_key=key, nullable=nullable)


def _owner(table: str, column: str, *, key: bool = False, nullable: bool = False) -> sa.Column[str]:
    owner = sa.ForeignKey(f"{table}.id", ondelete="CASCADE")
    return sa.Column(column, sa.Text, owner, primary_key=key, nullable=nullable)


def _app() -> sa.Column[str]:
    return sa.Column("client_id", sa.Text, sa.ForeignKey("apps.client_id", ondelete="CASCADE"), nullable=False)


def _index(table: str, *columns: str) -> None:
    op.create_index(f"ix_{table}_{'_'.join(columns)}", table, list(columns))


def _apps() -> None:
    op.create_table(
        "apps",
        _text("client_id", key=True),
        _text("name"),
        _owner("users", "owner_id", nullable=True),
        _owner("organizations", "org_id", nullable=True),
        _text("homepage"),
        _text("redirect_uris"),
        _text("scopes"),
        _text("required_scopes"),
        _text("extra_scopes"),
        _number("confidential"),
        _number("token_lifetime"),
        _number("require_pkce"),
        _number("refresh_tokens"),
        _text("redirect_match"),
        _number("created_at"),
        _number("token_exchange"),
        _number("token_duration"),
        _text("allowed_scopes", nullable=True),
        _text("allowed_roles", nullable=True),
        _text("allowed_networks", nullable=True),
        _number("daily_quota", nullable=True),
        _number("paused"),
    )
    _index("apps", "owner_id")
    _index("apps", "org_id")
    op.create_table(
        "app_secrets",
        _blob("key", key=True),
        _app(),
        _text("last_four"),
        _number("created_at"),
        _number("expires_at", nullable=True),
        sqlite_with_rowid=False,
    )
    _index("app_secrets", "client_id")
    _index("app_secrets", "expires_at")
    op.create_table(
        "cimd_documents",
        _text("client_id", key=True),
        _text("document"),
        _number("fetched_at"),
        _number("expires_at"),
        _number("fetching_until"),
    )
    _index("cimd_documents", "expires_at")
    op.create_table(
        "app_errors",
        _text("id", key=True),
        _app(),
        _number("created_at"),
        _text("endpoint"),
        _text("error"),
        _text("description"),
        _text("sent"),
    )
    _index("app_errors", "client_id", "created_at")
    _index("app_errors", "created_at")
    op.create_table(
        "operator_requests",
        _text("id", key=True),
        _app(),
        _text("wanted"),
        _text("reason"),
        _text("asked_by"),
        _number("created_at"),
        _number("granted", nullable=True),
        _number("decided_at", nullable=True),
    )
    _index("operator_requests", "client_id")
    _index("operator_requests", "created_at")
    waiting = sa.text("granted IS NULL")
    op.create_index(
        "uq_operator_requests_waiting",
        "operator_requests",
        ["client_id", "wanted"],
        unique=True,
        sqlite_where=waiting,
        postgresql_where=waiting,
    )


def _consents() -> None:
    op.create_table(
        "consents",
        _text("id", key=True),
        _owner("users", "user_id"),
        _text("client_id"),
        sa.Column("app_id", sa.Text, sa.ForeignKey("apps.client_id", ondelete="CASCADE"), nullable=True),
        _text("scopes"),
        _text("face"),
        _text("app_name"),
        _number("created_at"),
        _number("updated_at"),
        _number("last_used_at", nullable=True),
    )
    _index("consents", "client_id")
    _index("consents", "app_id")
    op.create_index("uq_consents_user_id_client_id", "consents", ["user_id", "client_id"], unique=True)
    op.create_table(
        "consent_organizations",
        _owner("consents", "consent_id", key=True),
        _owner("organizations", "org_id", key=True),
        sqlite_with_rowid=False,
    )
    _index("consent_organizations", "org_id")


def _tokens() -> None:
    op.create_table(
        "codes",
        _blob("key", key=True),
        _text("client_id"),
        _owner("consents", "consent_id"),
        _owner("users", "user_id"),
        _text("redirect_uri"),
        _number("redirect_uri_sent"),
        _text("scopes"),
        _text("challenge", nullable=True),
        _text("nonce", nullable=True),
        _number("auth_time"),
        _number("expires_at"),
        _number("redeemed_at", nullable=True),
        _text("family"),
        sqlite_with_rowid=False,
    )
    _index("codes", "expires_at")
    op.create_table(
        "app_tokens",
        _blob("key", key=True),
        _text("client_id"),
        _owner("users", "user_id"),
        _owner("consents", "consent_id", nullable=True),
        _owner("organizations", "org_id", nullable=True),
        _text("scopes"),
        _text("family"),
        _blob("supersedes", nullable=True),
        _number("created_at"),
        _number("expires_at"),
        sqlite_with_rowid=False,
    )
    _index("app_tokens", "consent_id")
    _index("app_tokens", "user_id")
    _index("app_tokens", "org_id")
    _index("app_tokens", "family")
    _index("app_tokens", "expires_at")
    op.create_table(
        "refresh_tokens",
        _blob("key", key=True),
        _text("client_id"),
        _owner("users", "user_id"),
        _owner("consents", "consent_id"),
        _text("scopes"),
        _number("auth_time"),
        _text("family"),
        _blob("predecessor", nullable=True),
        _number("superseded_at", nullable=True),
        _number("expires_at"),
        sqlite_with_rowid=False,
    )
    _index("refresh_tokens", "consent_id")
    _index("refresh_tokens", "user_id")
    _index("refresh_tokens", "family")
    _index("refresh_tokens", "expires_at")
