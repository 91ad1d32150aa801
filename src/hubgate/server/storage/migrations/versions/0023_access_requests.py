"""Adds requests for access to gated repos."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"


def upgrade() -> None:
    op.create_table(
        "access_requests",
        _reference("repo_id", "repos"),
        _reference("user_id", "users"),
        *_required(sa.Text, "id", "status"),
        *_required(sa.BigInteger, "asked"),
        *_required(sa.Text, "answers", "reason"),
        *_required(sa.BigInteger, "created_at"),
        sa.Column("reviewed_at", sa.BigInteger),
        sa.Column("reviewer_id", sa.Text),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_access_requests_id", "access_requests", ["id"], unique=True)
    columns = ["repo_id", "status", "created_at", "id"]
    op.create_index(f"ix_access_requests_{'_'.join(columns)}", "access_requests", columns)
    op.create_index("ix_access_requests_user_id", "access_requests", ["user_id"])


def _required(kind: type[sa.Text] | type[sa.BigInteger], *names: str) -> "list[sa.Column[Any]]":
    return [sa.Column(name, kind, nullable=False) for name in names]


def _reference(name: str, table: str) -> "sa.Column[str]":
    return sa.Column(name, sa.Text, sa.ForeignKey(f"{table}.id", ondelete="CASCADE"), primary_key=True)
