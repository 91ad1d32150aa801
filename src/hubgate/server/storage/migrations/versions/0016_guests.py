"""Adds storage accounting for guests, commits that exist only in pull requests, and a webhook quota for guests.

Existing large files and commits count as the owner's. The newest commit of each pull request is marked.
"""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"

_OF_GUESTS = sa.text("guest = 1")
_WAITING = sa.text("num = 0")


def _repo() -> "sa.Column[str]":
    return sa.Column("repo_id", sa.Text, sa.ForeignKey("repos.id", ondelete="CASCADE"), primary_key=True)


def upgrade() -> None:
    op.add_column("discussions", sa.Column("closed_by", sa.Text))
    op.create_table(
        "guest_bytes",
        sa.Column("user_id", sa.Text, sa.ForeignKey("users.id", ondelete="CASCADE"), primary_key=True),
        _repo(),
        sa.Column("num", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("oid", sa.Text, primary_key=True),
        sa.Column("bytes", sa.BigInteger, nullable=False),
        sa.Column("updated_at", sa.BigInteger, nullable=False),
        sa.Column("checked", sa.BigInteger),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_guest_bytes_repo_id_num", "guest_bytes", ["repo_id", "num"])
    op.create_index("ix_guest_bytes_repo_id_oid", "guest_bytes", ["repo_id", "oid"])
    op.create_index(
        "ix_guest_bytes_waiting", "guest_bytes", ["updated_at"], sqlite_where=_WAITING, postgresql_where=_WAITING
    )
    op.create_table(
        "pull_request_commits",
        _repo(),
        sa.Column("sha", sa.Text, primary_key=True),
        sa.Column("is_reachable", sa.BigInteger, nullable=False),
        sa.Column("checked", sa.BigInteger),
        sqlite_with_rowid=False,
    )
    op.execute(
        """
        INSERT INTO pull_request_commits (repo_id, sha, is_reachable)
        SELECT DISTINCT repo_id, sha, 1 FROM refs WHERE name LIKE 'refs/pr/%'
        """
    )
    op.add_column("lfs_links", sa.Column("guest", sa.BigInteger, nullable=False, server_default="0"))
    op.add_column("lfs_links", sa.Column("checked", sa.BigInteger))
    op.create_index(
        "ix_lfs_links_of_guests",
        "lfs_links",
        ["repo_id", "oid"],
        sqlite_where=_OF_GUESTS,
        postgresql_where=_OF_GUESTS,
    )
    op.create_index("ix_discussions_repo_id_author_id", "discussions", ["repo_id", "author_id"])
    op.add_column("events", sa.Column("guest", sa.BigInteger, nullable=False, server_default="0"))
    op.add_column("webhooks", sa.Column("guest_quota_used", sa.BigInteger, nullable=False, server_default="0"))
