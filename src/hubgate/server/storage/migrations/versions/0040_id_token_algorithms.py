"""Adds the algorithm that signs an app's ID tokens."""

import sqlalchemy as sa
from alembic import op

revision = "0040"
down_revision = "0039"


def upgrade() -> None:
    op.add_column("apps", sa.Column("id_token_signed_response_alg", sa.Text, nullable=False, server_default="RS256"))
