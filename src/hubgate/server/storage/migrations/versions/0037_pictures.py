"""Adds uploaded pictures of accounts and logos of apps."""

import sqlalchemy as sa
from alembic import op

revision = "0037"
down_revision = "0036"

_OWNERS = {"user_id": "users.id", "org_id": "organizations.id", "client_id": "apps.client_id"}


def upgrade() -> None:
    op.create_table(
        "pictures",
        sa.Column("owner_id", sa.Text, primary_key=True),
        *(sa.Column(name, sa.Text, sa.ForeignKey(key, ondelete="CASCADE")) for name, key in _OWNERS.items()),
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("small", sa.LargeBinary, nullable=False),
        sa.Column("large", sa.LargeBinary, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
    )
    for name in _OWNERS:
        op.create_index(f"ix_pictures_{name}", "pictures", [name])
