"""Apps, what users allowed them, and what they were given."""

from sqlalchemy import BigInteger, Column, ForeignKey, Index, LargeBinary, Table, Text, text

from hubgate.server.storage.schema.base import metadata, owner

# Registered apps (oauth/apps/). Lists are JSON, scopes separated by spaces.
apps = Table(
    "apps",
    metadata,
    Column("client_id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    # One of the two owns it.
    owner("users", "owner_id", nullable=True),
    owner("organizations", "org_id", nullable=True),
    Column("homepage", Text, nullable=False),
    Column("redirect_uris", Text, nullable=False),
    Column("scopes", Text, nullable=False),
    Column("required_scopes", Text, nullable=False),
    # Scopes of the operator's own that this app was given.
    Column("extra_scopes", Text, nullable=False),
    Column("confidential", BigInteger, nullable=False),
    Column("token_lifetime", BigInteger, nullable=False),
    Column("require_pkce", BigInteger, nullable=False),
    Column("refresh_tokens", BigInteger, nullable=False),
    Column("redirect_match", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    # Token exchange: the operator's privilege, then what the organization's admins set; null sets no limit.
    Column("token_exchange", BigInteger, nullable=False),
    Column("token_duration", BigInteger, nullable=False),
    Column("allowed_scopes", Text),
    Column("allowed_roles", Text),
    Column("allowed_networks", Text),
    Column("daily_quota", BigInteger),
    Column("paused", BigInteger, nullable=False),
    # Tokens exchanged before this are dead.
    Column("exchange_since", BigInteger, nullable=False, server_default="0"),
    Index(None, "owner_id"),
    Index(None, "org_id"),
)


def _app() -> Column[str]:
    return Column("client_id", Text, ForeignKey("apps.client_id", ondelete="CASCADE"), nullable=False)


# SHA-256 of client secrets. During an overlap an app has two.
app_secrets = Table(
    "app_secrets",
    metadata,
    Column("key", LargeBinary, primary_key=True),
    _app(),
    Column("last_four", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    # Null for the current one.
    Column("expires_at", BigInteger),
    Index(None, "client_id"),
    Index(None, "expires_at"),
    sqlite_with_rowid=False,
)

# Metadata documents of apps that were never registered, as long as HTTP lets us keep them (oauth/cimd/).
cimd_documents = Table(
    "cimd_documents",
    metadata,
    Column("client_id", Text, primary_key=True),
    # Empty until it was fetched once.
    Column("document", Text, nullable=False),
    Column("fetched_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    # Until when some process is at it; 0 when none is.
    Column("fetching_until", BigInteger, nullable=False),
    Index(None, "expires_at"),
)

# What a user allows an app: the union of what was approved. Live tokens are cut down to it (oauth/consent/).
consents = Table(
    "consents",
    metadata,
    Column("id", Text, primary_key=True),
    owner("users", "user_id"),
    # No reference: an app with a metadata document has no row.
    Column("client_id", Text, nullable=False),
    # The same once more for a registered app, so that a consent ends with it, however it ends.
    Column("app_id", Text, ForeignKey("apps.client_id", ondelete="CASCADE")),
    Column("scopes", Text, nullable=False),
    # The app's name and redirect addresses as the user saw them; another face asks again.
    Column("face", Text, nullable=False),
    Column("app_name", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    Column("last_used_at", BigInteger),
    # The same for tokens that are for other servers (RFC 8707).
    Column("other_scopes", Text, nullable=False, server_default=text("''")),
    Index(None, "client_id"),
    Index(None, "app_id"),
    Index("uq_consents_user_id_client_id", "user_id", "client_id", unique=True),
)

# The organizations a consent reaches, each with the scopes that the user granted it with.
consent_organizations = Table(
    "consent_organizations",
    metadata,
    owner("consents", "consent_id", key=True),
    owner("organizations", "org_id", key=True),
    Column("scopes", Text, nullable=False, server_default=text("''")),
    # Of the membership it was granted under: a user who left and joined again has granted nothing.
    Column("joined_at", BigInteger, nullable=False, server_default="0"),
    Index(None, "org_id"),
    sqlite_with_rowid=False,
)

# What a consent page showed when it was allowed (oauth/approvals/): only the same passes without being asked.
consent_approvals = Table(
    "consent_approvals",
    metadata,
    owner("consents", "consent_id", key=True),
    # A digest of the next two; empty where they are.
    Column("shown", Text, primary_key=True),
    Column("resources", Text, nullable=False),
    # Of an app without a secret on a loopback address.
    Column("redirect_uri", Text, nullable=False),
    Column("scopes", Text, nullable=False),
    Column("approved_at", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

# Authorization codes, by hour and SHA-256 as tokens are. A redeemed one stays until it expires, to know a replay.
codes = Table(
    "codes",
    metadata,
    Column("key", LargeBinary, primary_key=True),
    Column("client_id", Text, nullable=False),
    owner("consents", "consent_id"),
    owner("users", "user_id"),
    Column("redirect_uri", Text, nullable=False),
    Column("redirect_uri_sent", BigInteger, nullable=False),
    Column("scopes", Text, nullable=False),
    Column("challenge", Text),
    Column("nonce", Text),
    Column("auth_time", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    Column("redeemed_at", BigInteger),
    # Of the tokens it was redeemed for: a replay ends them.
    Column("family", Text, nullable=False),
    # The servers it is requested for (RFC 8707), separated by spaces; empty for this hub.
    Column("resources", Text, nullable=False, server_default=text("''")),
    Index(None, "expires_at"),
    sqlite_with_rowid=False,
)

# Access tokens of apps: consented ones hang on a consent, exchanged ones on an organization.
app_tokens = Table(
    "app_tokens",
    metadata,
    Column("key", LargeBinary, primary_key=True),
    Column("client_id", Text, nullable=False),
    owner("users", "user_id"),
    owner("consents", "consent_id", nullable=True),
    # The fence of an exchanged token.
    owner("organizations", "org_id", nullable=True),
    Column("scopes", Text, nullable=False),
    Column("family", Text, nullable=False),
    # The refresh token that its first use supersedes.
    Column("supersedes", LargeBinary),
    Column("created_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    # The servers it is requested for (RFC 8707), separated by spaces; empty for this hub.
    Column("resources", Text, nullable=False, server_default=text("''")),
    Index(None, "consent_id"),
    Index(None, "user_id"),
    Index(None, "org_id", "client_id", "created_at"),
    Index(None, "family"),
    Index(None, "expires_at"),
    sqlite_with_rowid=False,
)

# Devices that wait for their users (oauth/device/). A user code is kept as a MAC: it is short enough to be guessed.
device_codes = Table(
    "device_codes",
    metadata,
    Column("key", LargeBinary, primary_key=True),
    Column("user_code", LargeBinary, nullable=False, unique=True),
    # No reference: a CLI that the operator configured has no row.
    Column("client_id", Text, nullable=False),
    Column("app_id", Text, ForeignKey("apps.client_id", ondelete="CASCADE")),
    # What was asked; once decided, what was approved.
    Column("scopes", Text, nullable=False),
    # "pending", then "approved" or "denied"; "consumed" once the token was fetched.
    Column("state", Text, nullable=False),
    owner("users", "user_id", nullable=True),
    owner("consents", "consent_id", nullable=True),
    Column("auth_time", BigInteger),
    Column("interval", BigInteger, nullable=False),
    Column("polled_at", BigInteger),
    Column("ip", Text, nullable=False),
    Column("user_agent", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    # The servers it is requested for (RFC 8707), separated by spaces; empty for this hub.
    Column("resources", Text, nullable=False, server_default=text("''")),
    Index(None, "app_id"),
    Index(None, "user_id"),
    Index(None, "consent_id"),
    Index(None, "expires_at"),
    sqlite_with_rowid=False,
)

refresh_tokens = Table(
    "refresh_tokens",
    metadata,
    Column("key", LargeBinary, primary_key=True),
    Column("client_id", Text, nullable=False),
    owner("users", "user_id"),
    owner("consents", "consent_id"),
    Column("scopes", Text, nullable=False),
    Column("auth_time", BigInteger, nullable=False),
    Column("family", Text, nullable=False),
    # The one before it in the family, which its first use supersedes.
    Column("predecessor", LargeBinary),
    # When its successor, or an access token issued with that, was first used.
    Column("superseded_at", BigInteger),
    Column("expires_at", BigInteger, nullable=False),
    # The servers it is requested for (RFC 8707), separated by spaces; empty for this hub.
    Column("resources", Text, nullable=False, server_default=text("''")),
    Index(None, "consent_id"),
    Index(None, "user_id"),
    Index(None, "family"),
    Index(None, "expires_at"),
    sqlite_with_rowid=False,
)

# The latest refusals an app met, for its owner: the names of what was sent, and what of it is harmless.
app_errors = Table(
    "app_errors",
    metadata,
    # The id of the refused request.
    Column("id", Text, primary_key=True),
    _app(),
    Column("created_at", BigInteger, nullable=False),
    # The path that was asked.
    Column("endpoint", Text, nullable=False),
    Column("error", Text, nullable=False),
    Column("description", Text, nullable=False),
    # JSON (oauth/explain/model.py).
    Column("sent", Text, nullable=False),
    Index(None, "client_id", "created_at"),
    Index(None, "created_at"),
)

_WAITING = text("granted IS NULL")

# What app owners asked the operator for: the privilege of token exchange, or a scope of the operator's.
operator_requests = Table(
    "operator_requests",
    metadata,
    Column("id", Text, primary_key=True),
    _app(),
    # "token-exchange" or a scope's name.
    Column("wanted", Text, nullable=False),
    Column("reason", Text, nullable=False),
    # The id of a user, who may be gone by now.
    Column("asked_by", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    # Null while it waits; then 1 granted, 0 refused.
    Column("granted", BigInteger),
    Column("decided_at", BigInteger),
    Index(None, "created_at"),
    # One of a kind waits at a time.
    Index(
        "uq_operator_requests_waiting",
        "client_id",
        "wanted",
        unique=True,
        sqlite_where=_WAITING,
        postgresql_where=_WAITING,
    ),
    Index(None, "client_id"),
)
