"""Adds redirect URIs for after sign-out."""

import sqlalchemy as sa
from alembic import op

revision = "0035"
down_revision = "0034"


def upgrade() -> None:
    op.add_column("apps", sa.Column("post_logout_redirect_uris", sa.Text, nullable=False, server_default="[]"))
