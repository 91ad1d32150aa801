"""Every table on one page. Migrations build them; a test holds the two against each other.

Columns are text, blob or 64-bit integer, so that no converter stands between driver and code. Times are integer
microseconds since the epoch (`clock.py`). Nothing that could be presented as a credential is stored.
"""

from sqlalchemy import BigInteger, Column, ForeignKey, Index, LargeBinary, MetaData, Table, Text, text

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    }
)

# Keys that sign ID tokens. The private half is sealed under the server secret, bound to its kid (oauth/keys/).
signing_keys = Table(
    "signing_keys",
    metadata,
    Column("kid", Text, primary_key=True),
    # Consecutive: of two processes that rotate at once, one finds its number taken and does nothing.
    Column("seq", BigInteger, nullable=False, unique=True),
    Column("algorithm", Text, nullable=False),
    Column("public_jwk", Text, nullable=False),
    Column("sealed_private", LargeBinary, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("signs_from", BigInteger, nullable=False),
    # When it leaves the published set; null while it is the newest.
    Column("published_until", BigInteger),
    Column("revoked_at", BigInteger),
)

# Counters of the rate limiter, one row for a bucket's current window (throttle/).
rate_limits = Table(
    "rate_limits",
    metadata,
    Column("bucket", LargeBinary, primary_key=True),
    Column("hits", BigInteger, nullable=False),
    Column("resets_at", BigInteger, nullable=False),
    Index(None, "resets_at"),
    sqlite_with_rowid=False,
)

# Who runs a loop that must have one runner at a time (worker/loops.py).
leases = Table(
    "leases",
    metadata,
    Column("name", Text, primary_key=True),
    Column("holder", Text, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

# What happens once in a hub's life, such as the making of its first operator: the insert that wins did it.
milestones = Table(
    "milestones",
    metadata,
    Column("name", Text, primary_key=True),
    Column("reached_at", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

# Every name that a user or an organization has or ever had: nobody else gets it (accounts/names.py).
names = Table(
    "names",
    metadata,
    # Lower case.
    Column("key", Text, primary_key=True),
    # "user" or "org".
    Column("kind", Text, nullable=False),
    # Outlives its owner.
    Column("owner_id", Text, nullable=False),
    # 0 after a rename or a deletion.
    Column("current", BigInteger, nullable=False),
    Index(None, "owner_id"),
    sqlite_with_rowid=False,
)

users = Table(
    "users",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("fullname", Text, nullable=False),
    Column("email", Text, nullable=False, unique=True),
    Column("email_verified_at", BigInteger),
    # argon2id; null until a user whom an operator made has set one.
    Column("password_hash", Text),
    Column("website", Text, nullable=False),
    Column("operator", BigInteger, nullable=False),
    Column("can_pay", BigInteger, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("disabled_at", BigInteger),
)


def _owner(table: str, column: str, *, key: bool = False, nullable: bool = False) -> Column[str]:
    """A reference that goes with what it refers to."""
    return Column(column, Text, ForeignKey(f"{table}.id", ondelete="CASCADE"), primary_key=key, nullable=nullable)


organizations = Table(
    "organizations",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("fullname", Text, nullable=False),
    Column("website", Text, nullable=False),
    Column("plan", Text, nullable=False),
    Column("can_pay", BigInteger, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    # Counted up by every change of membership, so that such changes wait for one another (the last admin stays).
    Column("members_version", BigInteger, nullable=False),
)

memberships = Table(
    "memberships",
    metadata,
    _owner("organizations", "org_id", key=True),
    _owner("users", "user_id", key=True),
    # 1 read, 2 contributor, 3 write, 4 admin.
    Column("role", BigInteger, nullable=False),
    Column("joined_at", BigInteger, nullable=False),
    Index(None, "user_id"),
    sqlite_with_rowid=False,
)

# Open invitations: into an organization, or, without one, to this hub. An answered one is deleted.
invitations = Table(
    "invitations",
    metadata,
    Column("id", Text, primary_key=True),
    # SHA-256 of the secret in the mailed link.
    Column("key", LargeBinary, nullable=False, unique=True),
    _owner("organizations", "org_id", nullable=True),
    # One of the two says who is invited.
    Column("email", Text),
    _owner("users", "user_id", nullable=True),
    Column("role", BigInteger, nullable=False),
    Column("invited_by", Text),
    Column("created_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    Index(None, "org_id"),
    Index(None, "user_id"),
    Index(None, "email"),
    Index(None, "expires_at"),
)

# Signed-in browsers. The key is the SHA-256 of the cookie.
sessions = Table(
    "sessions",
    metadata,
    Column("key", LargeBinary, primary_key=True),
    Column("id", Text, nullable=False, unique=True),
    _owner("users", "user_id"),
    Column("created_at", BigInteger, nullable=False),
    Column("last_used_at", BigInteger, nullable=False),
    Column("ip", Text, nullable=False),
    Column("user_agent", Text, nullable=False),
    Index(None, "user_id"),
    Index(None, "last_used_at"),
)

# Links in mails that prove an address: verify, change of address, reset. The key is the SHA-256 of the secret.
links = Table(
    "links",
    metadata,
    Column("key", LargeBinary, primary_key=True),
    Column("purpose", Text, nullable=False),
    _owner("users", "user_id"),
    # The address that the link proves.
    Column("email", Text, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    Index(None, "user_id"),
    Index(None, "expires_at"),
)

# Personal tokens. The key is the hour of making and a SHA-256 (accounts/tokens/text.py).
access_tokens = Table(
    "access_tokens",
    metadata,
    Column("key", LargeBinary, primary_key=True),
    Column("id", Text, nullable=False, unique=True),
    _owner("users", "user_id"),
    Column("name", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("last_four", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("last_used_at", BigInteger),
    Index(None, "user_id"),
)

# Mail that is to be sent, sealed: it holds links that open accounts (mail/outbox.py).
mails = Table(
    "mails",
    metadata,
    Column("id", Text, primary_key=True),
    Column("sealed", LargeBinary, nullable=False),
    Column("attempts", BigInteger, nullable=False),
    # When to try next; a sender that takes it moves this ahead, so that no two send it.
    Column("due_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    Index(None, "due_at"),
)

_UNSEALED = text("batch IS NULL")

# What happened in an organization. Outlives the organization and the people in it (audit/).
audit_entries = Table(
    "audit_entries",
    metadata,
    Column("id", Text, primary_key=True),
    Column("org_id", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("type", Text, nullable=False),
    Column("message", Text, nullable=False),
    # Null when the operator's command line or the hub itself did it.
    Column("author_id", Text),
    Column("author_name", Text, nullable=False),
    Column("ip", Text),
    Column("user_agent", Text),
    # JSON: the particulars, the personal token, the app.
    Column("data", Text),
    Column("token", Text),
    Column("oauth", Text),
    # The personal token's id once more, to tell whether it is still there.
    Column("token_id", Text),
    # The batch that sealed it and its place there, from 1; null until then.
    Column("batch", BigInteger),
    Column("position", BigInteger),
    Index(None, "org_id", "created_at", "id"),
    Index(None, "org_id", "batch", "position"),
    # Led by `batch`, or SQLite would take the index above and walk all that is sealed.
    Index(
        "ix_audit_entries_unsealed",
        "batch",
        "org_id",
        "created_at",
        "id",
        sqlite_where=_UNSEALED,
        postgresql_where=_UNSEALED,
    ),
)

# Links of each organization's chain: every batch's hash covers its entries and the hash before it.
audit_batches = Table(
    "audit_batches",
    metadata,
    Column("org_id", Text, primary_key=True),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("entries", BigInteger, nullable=False),
    Column("hash", LargeBinary, nullable=False),
    Column("sealed_at", BigInteger, nullable=False),
    # When retention dropped its entries; the hash stays, so that the chain still holds.
    Column("dropped_at", BigInteger),
    sqlite_with_rowid=False,
)

# Where each chain ends, under a MAC of the server secret: who can only write SQL can neither cut the end off nor
# replace the chain by another (audit/head.py).
audit_heads = Table(
    "audit_heads",
    metadata,
    Column("org_id", Text, primary_key=True),
    # The last batch and its hash.
    Column("seq", BigInteger, nullable=False),
    Column("hash", LargeBinary, nullable=False),
    # Retention has dropped the entries of the batches up to this one.
    Column("dropped", BigInteger, nullable=False),
    # The first batch that was sealed after somebody had tampered with the head; null if nobody has.
    Column("broken", BigInteger),
    Column("mac", LargeBinary, nullable=False),
    sqlite_with_rowid=False,
)

# Registered apps (oauth/apps/). Lists are JSON, scopes separated by spaces.
apps = Table(
    "apps",
    metadata,
    Column("client_id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    # One of the two owns it.
    _owner("users", "owner_id", nullable=True),
    _owner("organizations", "org_id", nullable=True),
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
    _owner("users", "user_id"),
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
    Index(None, "client_id"),
    Index(None, "app_id"),
    Index("uq_consents_user_id_client_id", "user_id", "client_id", unique=True),
)

consent_organizations = Table(
    "consent_organizations",
    metadata,
    _owner("consents", "consent_id", key=True),
    _owner("organizations", "org_id", key=True),
    Index(None, "org_id"),
    sqlite_with_rowid=False,
)

# Authorization codes, by hour and SHA-256 as tokens are. A redeemed one stays until it expires, to know a replay.
codes = Table(
    "codes",
    metadata,
    Column("key", LargeBinary, primary_key=True),
    Column("client_id", Text, nullable=False),
    _owner("consents", "consent_id"),
    _owner("users", "user_id"),
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
    Index(None, "expires_at"),
    sqlite_with_rowid=False,
)

# Access tokens of apps: consented ones hang on a consent, exchanged ones on an organization.
app_tokens = Table(
    "app_tokens",
    metadata,
    Column("key", LargeBinary, primary_key=True),
    Column("client_id", Text, nullable=False),
    _owner("users", "user_id"),
    _owner("consents", "consent_id", nullable=True),
    # The fence of an exchanged token.
    _owner("organizations", "org_id", nullable=True),
    Column("scopes", Text, nullable=False),
    Column("family", Text, nullable=False),
    # The refresh token that its first use supersedes.
    Column("supersedes", LargeBinary),
    Column("created_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    Index(None, "consent_id"),
    Index(None, "user_id"),
    Index(None, "org_id"),
    Index(None, "family"),
    Index(None, "expires_at"),
    sqlite_with_rowid=False,
)

refresh_tokens = Table(
    "refresh_tokens",
    metadata,
    Column("key", LargeBinary, primary_key=True),
    Column("client_id", Text, nullable=False),
    _owner("users", "user_id"),
    _owner("consents", "consent_id"),
    Column("scopes", Text, nullable=False),
    Column("auth_time", BigInteger, nullable=False),
    Column("family", Text, nullable=False),
    # The one before it in the family, which its first use supersedes.
    Column("predecessor", LargeBinary),
    # When its successor, or an access token issued with that, was first used.
    Column("superseded_at", BigInteger),
    Column("expires_at", BigInteger, nullable=False),
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
