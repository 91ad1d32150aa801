"""The audit log and its chains."""

from sqlalchemy import BigInteger, Column, Index, LargeBinary, Table, Text, text

from hubgate.server.storage.schema.base import metadata

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
