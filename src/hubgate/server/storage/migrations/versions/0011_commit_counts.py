"""Adds the number of commits of each ref. The background process counts those of existing refs."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"

_UNCOUNTED = sa.text("commits IS NULL")


def upgrade() -> None:
    op.add_column("refs", sa.Column("commits", sa.BigInteger))
    op.create_index(
        "ix_refs_uncounted", "refs", ["repo_id", "name"], sqlite_where=_UNCOUNTED, postgresql_where=_UNCOUNTED
    )
