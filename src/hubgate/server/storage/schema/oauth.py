"""Tables of apps, consents, codes and tokens."""

from sqlalchemy import BigInteger, Column, ForeignKey, Index, LargeBinary, Table, Text, text

from hubgate.server.storage.schema.base import metadata, owner

# Registered apps (oauth/apps/). Lists are JSON, scopes separated by spaces.
apps = Table(
    "apps",
    metadata,
    Column("client_id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    # At most one of the two is the owner.
    owner("users", "owner_id", nullable=True),
    owner("organizations", "org_id", nullable=True),
    Column("homepage", Text, nullable=False),
    Column("redirect_uris", Text, nullable=False),
    Column("scopes", Text, nullable=False),
    Column("required_scopes", Text, nullable=False),
    # Operator-defined scopes that were granted to this app.
    Column("extra_scopes", Text, nullable=False),
    Column("confidential", BigInteger, nullable=False),
    Column("token_lifetime", BigInteger, nullable=False),
    Column("require_pkce", BigInteger, nullable=False),
    Column("refresh_tokens", BigInteger, nullable=False),
    Column("redirect_match", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    # Token exchange: the privilege that the operator grants, then the settings of the organization's admins; null means
    # no limit.
    Column("token_exchange", BigInteger, nullable=False),
    Column("token_duration", BigInteger, nullable=False),
    Column("allowed_scopes", Text),
    Column("allowed_roles", Text),
    Column("allowed_networks", Text),
    Column("daily_quota", BigInteger),
    Column("paused", BigInteger, nullable=False),
    # Tokens that were exchanged before this time are invalid.
    Column("exchange_since", BigInteger, nullable=False, server_default="0"),
    # Whether ID tokens and userinfo have `groups`.
    Column("groups_claim", BigInteger, nullable=False, server_default="0"),
    # A JSON list.
    Column("post_logout_redirect_uris", Text, nullable=False, server_default="[]"),
    # Whether the app registered itself (oauth/registration/); then it has no owner.
    Column("self_registered", BigInteger, nullable=False, server_default="0"),
    Column("id_token_signed_response_alg", Text, nullable=False, server_default="RS256"),
    Index(None, "owner_id"),
    Index(None, "org_id"),
)


def _app() -> Column[str]:
    return Column("client_id", Text, ForeignKey("apps.client_id", ondelete="CASCADE"), nullable=False)


# SHA-256 of client secrets. During a rotation an app has several.
app_secrets = Table(
    "app_secrets",
    metadata,
    Column("key", LargeBinary, primary_key=True),
    _app(),
    Column("last_four", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    # Null for the current secret.
    Column("expires_at", BigInteger),
    Index(None, "client_id"),
    Index(None, "expires_at"),
    sqlite_with_rowid=False,
)

# Apps that registered themselves.
app_registrations = Table(
    "app_registrations",
    metadata,
    Column("client_id", Text, ForeignKey("apps.client_id", ondelete="CASCADE"), primary_key=True),
    # SHA-256 of the registration access token.
    Column("key", LargeBinary, nullable=False),
    # When a token was last issued, to the day; at first when the app was registered.
    Column("used_at", BigInteger, nullable=False),
    Index(None, "used_at"),
    sqlite_with_rowid=False,
)

# The operator's tokens with which apps may register themselves.
registration_tokens = Table(
    "registration_tokens",
    metadata,
    Column("id", Text, primary_key=True),
    # SHA-256 of the token.
    Column("key", LargeBinary, nullable=False),
    Column("last_four", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("last_used_at", BigInteger),
    Column("registrations", BigInteger, nullable=False),
)

# Cached metadata documents of unregistered apps (oauth/cimd/).
cimd_documents = Table(
    "cimd_documents",
    metadata,
    Column("client_id", Text, primary_key=True),
    # Empty until the first successful fetch.
    Column("document", Text, nullable=False),
    Column("fetched_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    # The end of the lease of the process that fetches the document; 0 if none does.
    Column("fetching_until", BigInteger, nullable=False),
    Index(None, "expires_at"),
)

# Operator-defined scopes that were granted to the app of a metadata document.
document_scopes = Table(
    "document_scopes",
    metadata,
    Column("client_id", Text, primary_key=True),
    Column("scope", Text, primary_key=True),
    Column("created_at", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

# The permissions that a user has granted to an app: the union of all approvals. Tokens are limited to these permissions
# when they are used (oauth/consent/).
consents = Table(
    "consents",
    metadata,
    Column("id", Text, primary_key=True),
    owner("users", "user_id"),
    # Not a foreign key: an app with a metadata document has no row.
    Column("client_id", Text, nullable=False),
    # The client_id of a registered app, as a foreign key: the consent is always deleted together with the app.
    Column("app_id", Text, ForeignKey("apps.client_id", ondelete="CASCADE")),
    Column("scopes", Text, nullable=False),
    # A digest of the app's name and redirect targets as the user saw them. After a change the user is asked again.
    Column("face", Text, nullable=False),
    Column("app_name", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    Column("last_used_at", BigInteger),
    # No longer used: replaced by resource_scopes.
    Column("other_scopes", Text, nullable=False, server_default=text("''")),
    Column("other_resources", Text, nullable=False, server_default=text("''")),
    # Scopes of tokens for other servers (RFC 8707): a JSON object with the scopes of each server.
    Column("resource_scopes", Text, nullable=False, server_default=text("'{}'")),
    Index(None, "client_id"),
    Index(None, "app_id"),
    Index("uq_consents_user_id_client_id", "user_id", "client_id", unique=True),
)

# The organizations of a consent, each with the scopes that the user granted for it.
consent_organizations = Table(
    "consent_organizations",
    metadata,
    owner("consents", "consent_id", key=True),
    owner("organizations", "org_id", key=True),
    Column("scopes", Text, nullable=False, server_default=text("''")),
    # When the membership began under which the user granted this: a user who leaves and rejoins must grant again.
    Column("joined_at", BigInteger, nullable=False, server_default="0"),
    Index(None, "org_id"),
    sqlite_with_rowid=False,
)

# Details of approved consent pages (oauth/consent/approval.py). Only a request with the same details skips the page.
consent_approvals = Table(
    "consent_approvals",
    metadata,
    owner("consents", "consent_id", key=True),
    # A digest of the next two columns; empty if both are empty.
    Column("shown", Text, primary_key=True),
    Column("resources", Text, nullable=False),
    # Set for an app without a secret on a loopback address.
    Column("redirect_uri", Text, nullable=False),
    Column("scopes", Text, nullable=False),
    Column("approved_at", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

# Authorization codes. The key has the form of a token's key. A redeemed code is retained for a while, to detect a
# replay.
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
    # The family of the tokens issued for the code: a replay revokes them.
    Column("family", Text, nullable=False),
    # The target servers (RFC 8707), separated by spaces; empty for this hub.
    Column("resources", Text, nullable=False, server_default=text("''")),
    # Requested claims (oauth/claims.py), separated by spaces.
    Column("claims", Text, nullable=False, server_default=text("''")),
    Index(None, "expires_at"),
    sqlite_with_rowid=False,
)

# Access tokens of apps, issued under a consent or by token exchange for an organization.
app_tokens = Table(
    "app_tokens",
    metadata,
    Column("key", LargeBinary, primary_key=True),
    Column("client_id", Text, nullable=False),
    owner("users", "user_id"),
    owner("consents", "consent_id", nullable=True),
    # The organization that an exchanged token is limited to.
    owner("organizations", "org_id", nullable=True),
    Column("scopes", Text, nullable=False),
    Column("family", Text, nullable=False),
    # The refresh token that is superseded when this token is first used.
    Column("supersedes", LargeBinary),
    Column("created_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    # The target servers (RFC 8707), separated by spaces; empty for this hub.
    Column("resources", Text, nullable=False, server_default=text("''")),
    # Requested claims (oauth/claims.py), separated by spaces.
    Column("claims", Text, nullable=False, server_default=text("''")),
    Index(None, "consent_id"),
    Index(None, "user_id"),
    Index(None, "org_id", "client_id", "created_at"),
    Index(None, "family"),
    Index(None, "expires_at"),
    sqlite_with_rowid=False,
)

# Device codes (oauth/device/). The user code is stored as a MAC, because it is short enough to brute-force.
device_codes = Table(
    "device_codes",
    metadata,
    Column("key", LargeBinary, primary_key=True),
    Column("user_code", LargeBinary, nullable=False, unique=True),
    # Not a foreign key: a CLI that the operator configured has no row.
    Column("client_id", Text, nullable=False),
    Column("app_id", Text, ForeignKey("apps.client_id", ondelete="CASCADE")),
    # The requested scopes; after the decision, the approved scopes.
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
    # The target servers (RFC 8707), separated by spaces; empty for this hub.
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
    # The previous token of the family, which is superseded when this token is first used.
    Column("predecessor", LargeBinary),
    # When its successor, or an access token issued with the successor, was first used.
    Column("superseded_at", BigInteger),
    Column("expires_at", BigInteger, nullable=False),
    # The target servers (RFC 8707), separated by spaces; empty for this hub.
    Column("resources", Text, nullable=False, server_default=text("''")),
    # Requested claims (oauth/claims.py), separated by spaces.
    Column("claims", Text, nullable=False, server_default=text("''")),
    Index(None, "consent_id"),
    Index(None, "user_id"),
    Index(None, "family"),
    Index(None, "expires_at"),
    sqlite_with_rowid=False,
)

# The latest rejected requests of an app, for its owner: parameter names, and the values that are not sensitive.
app_errors = Table(
    "app_errors",
    metadata,
    # The id of the rejected request.
    Column("id", Text, primary_key=True),
    _app(),
    Column("created_at", BigInteger, nullable=False),
    # The path of the request.
    Column("endpoint", Text, nullable=False),
    Column("error", Text, nullable=False),
    Column("description", Text, nullable=False),
    # JSON (oauth/explain/model.py).
    Column("sent", Text, nullable=False),
    Index(None, "client_id", "created_at"),
    Index(None, "created_at"),
)

_WAITING = text("granted IS NULL")

# Requests of app owners to the operator: the token exchange privilege, or an operator-defined scope.
operator_requests = Table(
    "operator_requests",
    metadata,
    Column("id", Text, primary_key=True),
    _app(),
    # "token-exchange" or a scope's name.
    Column("wanted", Text, nullable=False),
    Column("reason", Text, nullable=False),
    # A user id; the user may have been deleted.
    Column("asked_by", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    # Null while the request is open; then 1 for granted, 0 for rejected.
    Column("granted", BigInteger),
    Column("decided_at", BigInteger),
    Index(None, "created_at"),
    # At most one open request of each kind.
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
