"""Every table on one page. Migrations build them; a test holds the two against each other.

Columns are text, blob or 64-bit integer, so that no converter stands between driver and code. Times are integer
microseconds since the epoch (`clock.py`). Nothing that could be presented as a credential is stored.
"""

from sqlalchemy import BigInteger, Column, Index, LargeBinary, MetaData, Table, Text

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
