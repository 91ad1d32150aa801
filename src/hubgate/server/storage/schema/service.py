"""Tables of the service itself: signing keys, rate limits, leases and mail."""

from sqlalchemy import BigInteger, Column, Index, LargeBinary, Table, Text

from hubgate.server.storage.schema.base import metadata

# Keys that sign ID tokens and the gateway's identities. The private key is sealed under the server secret and bound to
# its kid (oauth/keys/).
signing_keys = Table(
    "signing_keys",
    metadata,
    Column("kid", Text, primary_key=True),
    # Consecutive and unique: if two processes rotate at once, only one adds a key.
    Column("seq", BigInteger, nullable=False, unique=True),
    Column("algorithm", Text, nullable=False),
    Column("public_jwk", Text, nullable=False),
    Column("sealed_private", LargeBinary, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("signs_from", BigInteger, nullable=False),
    # When the key is removed from the published set; null for the newest key.
    Column("published_until", BigInteger),
    Column("revoked_at", BigInteger),
)

# Counters of the rate limiter, one row per bucket for its current window (throttle/).
rate_limits = Table(
    "rate_limits",
    metadata,
    Column("bucket", LargeBinary, primary_key=True),
    Column("hits", BigInteger, nullable=False),
    Column("resets_at", BigInteger, nullable=False),
    Index(None, "resets_at"),
    sqlite_with_rowid=False,
)

# Leases of background loops, each of which runs in one process at a time (worker/loops.py).
leases = Table(
    "leases",
    metadata,
    Column("name", Text, primary_key=True),
    Column("holder", Text, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

# Events that happen once per hub, such as the creation of the first operator. Only the request whose insert succeeds
# continues.
milestones = Table(
    "milestones",
    metadata,
    Column("name", Text, primary_key=True),
    Column("reached_at", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

# Outgoing mail, sealed because it contains links that give access to accounts (mail/outbox.py).
mails = Table(
    "mails",
    metadata,
    Column("id", Text, primary_key=True),
    Column("sealed", LargeBinary, nullable=False),
    Column("attempts", BigInteger, nullable=False),
    # The time of the next attempt. A sender that claims the mail moves this ahead, so that only one sends it.
    Column("due_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    Index(None, "due_at"),
)
