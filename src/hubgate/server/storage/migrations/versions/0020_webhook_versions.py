"""Numbers the versions of a webhook's settings, to detect concurrent changes."""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    op.add_column("webhooks", sa.Column("version", sa.BigInteger, nullable=False, server_default="1"))
