"""Tables of users and organizations, and of their sessions, links, invitations and personal tokens."""

from sqlalchemy import BigInteger, Column, ForeignKey, Index, LargeBinary, Table, Text, text

from hubgate.server.storage.schema.base import metadata, owner

# Every current and former name of a user or an organization; nobody else may take it (accounts/renames.py). A name that
# was used for less than a day, without repos, is released.
names = Table(
    "names",
    metadata,
    # Lower case.
    Column("key", Text, primary_key=True),
    # "user" or "org".
    Column("kind", Text, nullable=False),
    # Not a foreign key: the row is retained after its owner is deleted.
    Column("owner_id", Text, nullable=False),
    # 0 after a rename or a deletion.
    Column("current", BigInteger, nullable=False),
    # When the name was first taken; null for names older than this column.
    Column("since", BigInteger),
    # 1 once the owner has had a repo under this name.
    Column("had_repos", BigInteger, nullable=False, server_default="0"),
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
    # argon2id; null until a user whom an operator created has set a password.
    Column("password_hash", Text),
    Column("website", Text, nullable=False),
    Column("operator", BigInteger, nullable=False),
    Column("can_pay", BigInteger, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("disabled_at", BigInteger),
    # Incremented by every new password: a request that was authorized before the change must not write after it.
    Column("credentials_version", BigInteger, nullable=False, server_default="0"),
    # 0 if the user does not want mail about discussions and access requests.
    Column("discussion_mail", BigInteger, nullable=False, server_default="1"),
)

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
    # Incremented by every change of membership, so that such changes are serialized (protects the last admin).
    Column("members_version", BigInteger, nullable=False),
    # When the current plan began: tokens that an earlier plan allowed do not become valid again.
    Column("plan_since", BigInteger, nullable=False, server_default="0"),
    # When the latest membership began. The next one begins later, even if a machine's clock is behind.
    Column("last_joined_at", BigInteger, nullable=False, server_default="0"),
)

memberships = Table(
    "memberships",
    metadata,
    owner("organizations", "org_id", key=True),
    owner("users", "user_id", key=True),
    # 1 read, 2 contributor, 3 write, 4 admin.
    Column("role", BigInteger, nullable=False),
    Column("joined_at", BigInteger, nullable=False),
    Index(None, "user_id"),
    sqlite_with_rowid=False,
)

# Open invitations to an organization or, if `org_id` is null, to this hub. An answered invitation is deleted.
invitations = Table(
    "invitations",
    metadata,
    Column("id", Text, primary_key=True),
    # SHA-256 of the secret in the mailed link.
    Column("key", LargeBinary, nullable=False, unique=True),
    owner("organizations", "org_id", nullable=True),
    # The invited person: exactly one of the two.
    Column("email", Text),
    owner("users", "user_id", nullable=True),
    Column("role", BigInteger, nullable=False),
    Column("invited_by", Text),
    Column("created_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    Index(None, "org_id"),
    Index(None, "user_id"),
    Index(None, "email"),
    Index(None, "expires_at"),
)

# Browser sessions. The key is the SHA-256 of the cookie.
sessions = Table(
    "sessions",
    metadata,
    Column("key", LargeBinary, primary_key=True),
    Column("id", Text, nullable=False, unique=True),
    owner("users", "user_id"),
    Column("created_at", BigInteger, nullable=False),
    Column("last_used_at", BigInteger, nullable=False),
    Column("ip", Text, nullable=False),
    Column("user_agent", Text, nullable=False),
    Index(None, "user_id"),
    Index(None, "last_used_at"),
)

# Mailed links that verify an address: verification, change of address, reset. The key is the SHA-256 of the secret.
links = Table(
    "links",
    metadata,
    Column("key", LargeBinary, primary_key=True),
    Column("purpose", Text, nullable=False),
    owner("users", "user_id"),
    # The address that the link verifies.
    Column("email", Text, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    Index(None, "user_id"),
    Index(None, "expires_at"),
)

# Personal tokens. The key is the hour of creation and a SHA-256 (accounts/tokens/text.py).
access_tokens = Table(
    "access_tokens",
    metadata,
    Column("key", LargeBinary, primary_key=True),
    Column("id", Text, nullable=False, unique=True),
    owner("users", "user_id"),
    Column("name", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("last_four", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("last_used_at", BigInteger),
    # The address of the last use.
    Column("last_used_ip", Text),
    # Null if the token never expires.
    Column("expires_at", BigInteger),
    # 1 once the background process has seen that the token expired: webhooks created with it then stop.
    Column("expired", BigInteger, nullable=False, server_default="0"),
    # When the mail about the coming expiry was queued.
    Column("expiry_notified_at", BigInteger),
    # The scopes that a fine-grained token has everywhere.
    Column("scopes", Text, nullable=False, server_default=text("''")),
    Index(None, "user_id"),
    Index(None, "expires_at"),
)

# What a fine-grained token reaches, each with its scopes: the user's own account, organizations and repos.
token_limits = Table(
    "token_limits",
    metadata,
    owner("access_tokens", "token_id", key=True),
    # The id of the user, the organization or the repo. Not a foreign key, because it refers to several tables.
    Column("target_id", Text, primary_key=True),
    # "user", "org" or "repo".
    Column("kind", Text, nullable=False),
    Column("scopes", Text, nullable=False),
    # When the user's membership in the organization, or in the owner of the repo, began: a user who leaves and rejoins
    # needs a new token. Null without a membership.
    Column("joined_at", BigInteger),
    sqlite_with_rowid=False,
)

# Uploaded pictures of users and organizations, and logos of apps, drawn anew (accounts/pictures/).
pictures = Table(
    "pictures",
    metadata,
    # The id of the account, or "app-" and the client ID.
    Column("owner_id", Text, primary_key=True),
    # The owner, so that the picture is deleted with it: exactly one of the three.
    owner("users", "user_id", nullable=True),
    owner("organizations", "org_id", nullable=True),
    Column("client_id", Text, ForeignKey("apps.client_id", ondelete="CASCADE")),
    # New with each upload: part of the picture's address.
    Column("id", Text, nullable=False),
    Column("small", LargeBinary, nullable=False),
    Column("large", LargeBinary, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Index(None, "user_id"),
    Index(None, "org_id"),
    Index(None, "client_id"),
)
