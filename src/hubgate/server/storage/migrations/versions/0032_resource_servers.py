"""Adds resource servers and their secrets, and the scopes of a consent for each other server.

Scopes for other servers keep only those that identify the user: a token for another server has no power on this hub.
"""

import json

import sqlalchemy as sa
from alembic import op

revision = "0032"
down_revision = "0031"

_IDENTITY_SCOPES = ("email", "profile", "openid")


def upgrade() -> None:
    op.create_table(
        "resource_servers",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("identifier", sa.Text, nullable=False),
        sa.Column("uri", sa.Text, nullable=False),
        sa.Column("verified_uri", sa.Text),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("owner_id", sa.Text, sa.ForeignKey("users.id", ondelete="CASCADE")),
        sa.Column("org_id", sa.Text, sa.ForeignKey("organizations.id", ondelete="CASCADE")),
        sa.Column("scopes", sa.Text, nullable=False),
        sa.Column("tokens", sa.Text, nullable=False),
        sa.Column("challenge", sa.Text, nullable=False),
        sa.Column("verified_at", sa.BigInteger),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.UniqueConstraint("verified_uri", name="uq_resource_servers_verified_uri"),
    )
    op.create_index("uq_resource_servers_owner_id_uri", "resource_servers", ["owner_id", "uri"], unique=True)
    op.create_index("uq_resource_servers_org_id_uri", "resource_servers", ["org_id", "uri"], unique=True)
    op.create_index("ix_resource_servers_uri", "resource_servers", ["uri"])
    op.create_table(
        "resource_secrets",
        sa.Column("key", sa.LargeBinary, primary_key=True),
        sa.Column("resource_id", sa.Text, sa.ForeignKey("resource_servers.id", ondelete="CASCADE"), nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("expires_at", sa.BigInteger),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_resource_secrets_resource_id", "resource_secrets", ["resource_id"])
    op.create_index("ix_resource_secrets_expires_at", "resource_secrets", ["expires_at"])
    op.add_column("consents", sa.Column("resource_scopes", sa.Text, nullable=False, server_default=sa.text("'{}'")))
    _fill_resource_scopes()


def _fill_resource_scopes() -> None:
    sql = "SELECT id, other_scopes, other_resources FROM consents WHERE other_resources <> ''"
    update = sa.text("UPDATE consents SET resource_scopes = :granted WHERE id = :id")
    for consent_id, scopes, resources in list(op.get_bind().execute(sa.text(sql))):
        left = " ".join(name for name in _IDENTITY_SCOPES if name in scopes.split())
        granted = json.dumps(dict.fromkeys(resources.split(), left))
        op.get_bind().execute(update, {"id": consent_id, "granted": granted})
