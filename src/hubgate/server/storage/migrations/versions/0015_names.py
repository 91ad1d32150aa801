"""Since when an account has a name and whether it had repos then; when a repo left a name and who let it lead out.

Of names from before nothing is known: those of accounts stay reserved, those of repos go on leading where they led.
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
