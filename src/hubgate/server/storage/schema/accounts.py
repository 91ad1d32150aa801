"""Users, organizations, and what they sign in with."""

from sqlalchemy import BigInteger, Column, Index, LargeBinary, Table, Text

from hubgate.server.storage.schema.base import metadata, owner

# Every name that a user or an organization has or ever had: nobody else gets it (accounts/names.py). A name that was
# held for less than a day, without repos, is forgotten.
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
    # When it was first taken; null where that was before this was stored.
    Column("since", BigInteger),
    # 1 once its owner had a repo while this was its name.
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
    # argon2id; null until a user whom an operator made has set one.
    Column("password_hash", Text),
    Column("website", Text, nullable=False),
    Column("operator", BigInteger, nullable=False),
    Column("can_pay", BigInteger, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("disabled_at", BigInteger),
    # Counted up by every new password: a request that was judged before it changes nothing after it.
    Column("credentials_version", BigInteger, nullable=False, server_default="0"),
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
    # Counted up by every change of membership, so that such changes wait for one another (the last admin stays).
    Column("members_version", BigInteger, nullable=False),
    # When it got its plan: tokens that an earlier one allowed do not come back.
    Column("plan_since", BigInteger, nullable=False, server_default="0"),
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

# Open invitations: into an organization, or, without one, to this hub. An answered one is deleted.
invitations = Table(
    "invitations",
    metadata,
    Column("id", Text, primary_key=True),
    # SHA-256 of the secret in the mailed link.
    Column("key", LargeBinary, nullable=False, unique=True),
    owner("organizations", "org_id", nullable=True),
    # One of the two says who is invited.
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

# Signed-in browsers. The key is the SHA-256 of the cookie.
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

# Links in mails that prove an address: verify, change of address, reset. The key is the SHA-256 of the secret.
links = Table(
    "links",
    metadata,
    Column("key", LargeBinary, primary_key=True),
    Column("purpose", Text, nullable=False),
    owner("users", "user_id"),
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
    owner("users", "user_id"),
    Column("name", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("last_four", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("last_used_at", BigInteger),
    Index(None, "user_id"),
)
