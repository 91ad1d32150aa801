"""Adds separate indexes for deliveries outside a lane, waiting in it and blocking it, and the start time of watches.

The dropped index was never part of a release.
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"

_ALIVE = "state IN ('pending', 'retrying', 'parked')"


def upgrade() -> None:
    op.drop_index("ix_deliveries_lanes", "deliveries")
    outside_lanes = f"{_ALIVE} AND lease_until IS NULL AND (attempts > 0 OR replay_of <> '')"
    _partial("ix_deliveries_beside", ["webhook_id", "due_at", "seq"], outside_lanes)
    untried = f"{_ALIVE} AND attempts = 0 AND replay_of = ''"
    _partial("ix_deliveries_untried", ["webhook_id", "repo_id", "repo_seq"], untried)
    tried = f"{_ALIVE} AND tried_at IS NOT NULL AND replay_of = ''"
    _partial("ix_deliveries_tried", ["webhook_id", "repo_id", "tried_at"], tried)
    op.add_column("watches", sa.Column("made_at", sa.BigInteger))


def _partial(name: str, columns: Sequence[str], where: str) -> None:
    op.create_index(name, "deliveries", columns, sqlite_where=sa.text(where), postgresql_where=sa.text(where))
