"""Stores when an account took a name and if it ever had repos, when a repo was renamed, and who allowed a redirect.

These facts are unknown for existing names: names of accounts stay reserved, and redirects of repos stay valid.
"""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    op.add_column("names", sa.Column("since", sa.BigInteger))
    op.add_column("names", sa.Column("had_repos", sa.BigInteger, nullable=False, server_default="0"))
    op.add_column("repo_names", sa.Column("left_at", sa.BigInteger))
    op.add_column("repo_names", sa.Column("allowed_by", sa.Text))
