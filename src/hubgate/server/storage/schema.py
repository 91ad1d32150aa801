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
