"""Stores the grant of webhooks that apps create. Existing webhooks count as created by their owners."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"

_GRANTED = sa.text("client_id IS NOT NULL")


def upgrade() -> None:
    for name in ("client_id", "grant_kind", "granted_by", "granted_scopes", "reach"):
        op.add_column("webhooks", sa.Column(name, sa.Text))
    op.add_column("webhooks", sa.Column("granted_at", sa.BigInteger))
    for name, columns in (("granted", ["id"]), ("granted_by", ["granted_by", "client_id"])):
        op.create_index(f"ix_webhooks_{name}", "webhooks", columns, sqlite_where=_GRANTED, postgresql_where=_GRANTED)
