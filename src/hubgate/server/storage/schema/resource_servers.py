"""Tables of resource servers: APIs and MCP servers that accept tokens of this hub (oauth/resource_servers/)."""

from sqlalchemy import BigInteger, Column, Index, LargeBinary, Table, Text

from hubgate.server.storage.schema.base import metadata, owner

resource_servers = Table(
    "resource_servers",
    metadata,
    Column("id", Text, primary_key=True),
    # The address as registered, then as it is compared.
    Column("identifier", Text, nullable=False),
    Column("uri", Text, nullable=False),
    # The same once the owner has proved control of it. At most one owner has.
    Column("verified_uri", Text, unique=True),
    Column("name", Text, nullable=False),
    # Exactly one of the two is the owner.
    owner("users", "owner_id", nullable=True),
    owner("organizations", "org_id", nullable=True),
    # JSON: a list of [name, text].
    Column("scopes", Text, nullable=False),
    # The format of access tokens: "opaque" or "jwt".
    Column("tokens", Text, nullable=False),
    Column("challenge", Text, nullable=False),
    Column("verified_at", BigInteger),
    Column("created_at", BigInteger, nullable=False),
    Index("uq_resource_servers_owner_id_uri", "owner_id", "uri", unique=True),
    Index("uq_resource_servers_org_id_uri", "org_id", "uri", unique=True),
    Index(None, "uri"),
)

# SHA-256 of the secrets with which resource servers authenticate. During a rotation a server has several.
resource_secrets = Table(
    "resource_secrets",
    metadata,
    Column("key", LargeBinary, primary_key=True),
    owner("resource_servers", "resource_id"),
    Column("created_at", BigInteger, nullable=False),
    # Null for the current secret.
    Column("expires_at", BigInteger),
    Index(None, "resource_id"),
    Index(None, "expires_at"),
    sqlite_with_rowid=False,
)
