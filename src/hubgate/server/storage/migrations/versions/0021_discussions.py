"""Adds the entries of discussions (comments, commits, changes of title and status), reactions and participants.

The description of each existing pull request becomes its first comment.
"""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"


def _repo() -> "sa.Column[str]":
    return sa.Column("repo_id", sa.Text, sa.ForeignKey("repos.id", ondelete="CASCADE"), primary_key=True)


def _number(name: str) -> "sa.Column[int]":
    return sa.Column(name, sa.BigInteger, primary_key=True, autoincrement=False)


def upgrade() -> None:
    op.add_column("discussions", sa.Column("pinned", sa.BigInteger, nullable=False, server_default="0"))
    op.add_column("discussions", sa.Column("merge_sha", sa.Text))
    op.add_column("discussions", sa.Column("updated_at", sa.BigInteger, nullable=False, server_default="0"))
    op.create_table(
        "discussion_entries",
        _repo(),
        _number("num"),
        _number("position"),
        sa.Column("id", sa.Text, nullable=False, unique=True),
        sa.Column("type", sa.Text, nullable=False),
        sa.Column("author_id", sa.Text, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("detail", sa.Text),
        sa.Column("edits", sa.Text, nullable=False, server_default="[]"),
        sa.Column("hidden_by", sa.Text),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "ix_discussion_entries_repo_id_num_author_id", "discussion_entries", ["repo_id", "num", "author_id"]
    )
    op.create_table(
        "discussion_reactions",
        sa.Column("entry_id", sa.Text, sa.ForeignKey("discussion_entries.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("reaction", sa.Text, primary_key=True),
        sa.Column("user_id", sa.Text, primary_key=True),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "discussion_participants",
        _repo(),
        _number("num"),
        sa.Column("user_id", sa.Text, primary_key=True),
        sa.Column("mentioned_at", sa.BigInteger),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_discussion_participants_user_id", "discussion_participants", ["user_id"])
    op.add_column("users", sa.Column("discussion_mail", sa.BigInteger, nullable=False, server_default="1"))
    # The first entry reuses the id of its discussion, which no other entry has.
    op.execute(
        """
        INSERT INTO discussion_entries (repo_id, num, position, id, type, author_id, created_at, text)
        SELECT repo_id, num, 1, id, 'comment', author_id, created_at, description FROM discussions
        """
    )
    op.execute(
        """
        INSERT INTO discussion_participants (repo_id, num, user_id)
        SELECT repo_id, num, author_id FROM discussions
        """
    )
    op.execute("UPDATE discussions SET updated_at = created_at, description = ''")
