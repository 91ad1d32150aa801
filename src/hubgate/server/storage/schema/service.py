"""What the service itself keeps: signing keys, limits, leases, mail."""

from sqlalchemy import BigInteger, Column, Index, LargeBinary, Table, Text

from hubgate.server.storage.schema.base import metadata

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
