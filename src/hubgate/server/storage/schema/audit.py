"""Tables of the audit log and its hash chains."""

from sqlalchemy import BigInteger, Column, Index, LargeBinary, Table, Text, text

from hubgate.server.storage.schema.base import metadata

_UNSEALED = text("batch IS NULL")

# Audit entries of an organization, retained after the organization and its members are deleted (audit/).
audit_entries = Table(
    "audit_entries",
    metadata,
    Column("id", Text, primary_key=True),
    Column("org_id", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("type", Text, nullable=False),
    Column("message", Text, nullable=False),
    # Null for actions of the operator's command line or the hub itself.
    Column("author_id", Text),
    Column("author_name", Text, nullable=False),
    Column("ip", Text),
    Column("user_agent", Text),
    # JSON: the details, the personal token, the app.
    Column("data", Text),
    Column("token", Text),
    Column("oauth", Text),
    # The personal token's id as a column, to check whether the token still exists.
    Column("token_id", Text),
    # The batch that sealed the entry and the position in it, from 1; null until then.
    Column("batch", BigInteger),
    Column("position", BigInteger),
    Index(None, "org_id", "created_at", "id"),
    Index(None, "org_id", "batch", "position"),
    # `batch` comes first, or SQLite would use the index above and scan all sealed entries.
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

# Hash chain of each organization: a batch's hash covers its entries and the previous hash.
audit_batches = Table(
    "audit_batches",
    metadata,
    Column("org_id", Text, primary_key=True),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("entries", BigInteger, nullable=False),
    Column("hash", LargeBinary, nullable=False),
    Column("sealed_at", BigInteger, nullable=False),
    # When retention deleted the entries; the hash is retained, so that the chain stays verifiable.
    Column("dropped_at", BigInteger),
    sqlite_with_rowid=False,
)

# The end of each chain, with a MAC under the server secret: an attacker who can only write SQL cannot truncate or
# replace the chain (audit/head.py).
audit_heads = Table(
    "audit_heads",
    metadata,
    Column("org_id", Text, primary_key=True),
    # The last batch and its hash.
    Column("seq", BigInteger, nullable=False),
    Column("hash", LargeBinary, nullable=False),
    # Retention has deleted the entries of all batches up to this one.
    Column("dropped", BigInteger, nullable=False),
    # The first batch that was sealed after the head had been tampered with; null if it was not.
    Column("broken", BigInteger),
    Column("mac", LargeBinary, nullable=False),
    sqlite_with_rowid=False,
)
