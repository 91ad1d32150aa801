"""What leaves beside its lane is found however much waits in it; since when a name is watched."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"

_BESIDE = sa.text(
    "state IN ('pending', 'retrying', 'parked') AND lease_until IS NULL AND (attempts > 0 OR replay_of <> '')"
)


def upgrade() -> None:
    op.create_index(
        "ix_deliveries_beside",
        "deliveries",
        ["webhook_id", "due_at", "seq"],
        sqlite_where=_BESIDE,
        postgresql_where=_BESIDE,
    )
    op.add_column("watches", sa.Column("made_at", sa.BigInteger))
