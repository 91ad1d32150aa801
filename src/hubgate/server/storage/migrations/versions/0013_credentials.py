"""Adds a version of each user's credentials: requests in flight when the password changes are rejected."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    op.add_column("users", sa.Column("credentials_version", sa.BigInteger, nullable=False, server_default="0"))
