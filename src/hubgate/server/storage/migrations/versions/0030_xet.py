"""Adds chunked storage of large files (Xet), and quotas."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0030"
down_revision = "0029"


def upgrade() -> None:
    _create_xorbs()
    _create_files()
    for table, owners in (("user_quotas", "users"), ("org_quotas", "organizations")):
        op.create_table(table, _key("owner_id", f"{owners}.id", ondelete="CASCADE"), *_numbers("bytes"))


def _create_xorbs() -> None:
    op.create_table(
        "xorbs",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("hash", sa.Text, nullable=False),
        *_numbers("size", "raw_size", "created_at"),
        sa.Column("unused_at", sa.BigInteger),
    )
    _index("xorbs", "hash")
    _index("xorbs", "unused_at")
    op.create_table("xorb_chunks", _xorb(), sa.Column("chunks", sa.LargeBinary, nullable=False))
    op.create_table(
        "xet_chunks", sa.Column("chunk", sa.LargeBinary, primary_key=True), _xorb(), sqlite_with_rowid=False
    )
    _index("xet_chunks", "xorb")
    op.create_table(
        "xorb_uploads",
        _key("repo_id", "repos.id", ondelete="CASCADE"),
        _xorb(),
        sa.Column("user_id", sa.Text, primary_key=True),
        *_numbers("guest", "uploaded_at"),
        sqlite_with_rowid=False,
    )
    _index("xorb_uploads", "xorb")
    _index("xorb_uploads", "repo_id", "uploaded_at")
    _index("xorb_uploads", "uploaded_at")


def _create_files() -> None:
    op.create_table(
        "xet_files",
        sa.Column("repo_id", sa.Text, primary_key=True),
        sa.Column("oid", sa.Text, primary_key=True),
        sa.Column("hash", sa.Text, nullable=False),
        sa.Column("terms", sa.LargeBinary, nullable=False),
        *_numbers("created_at"),
        _of_file("lfs_links"),
        sqlite_with_rowid=False,
    )
    _index("xet_files", "repo_id", "hash", unique=True)
    _index("xet_files", "hash")
    op.create_table(
        "xet_file_xorbs",
        sa.Column("repo_id", sa.Text, primary_key=True),
        sa.Column("oid", sa.Text, primary_key=True),
        _key("xorb", "xorbs.id"),
        sa.Column("ranges", sa.LargeBinary, nullable=False),
        _of_file("xet_files"),
        sqlite_with_rowid=False,
    )
    _index("xet_file_xorbs", "xorb")


def _of_file(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(["repo_id", "oid"], [f"{table}.repo_id", f"{table}.oid"], ondelete="CASCADE")


def _numbers(*names: str) -> "list[sa.Column[Any]]":
    return [sa.Column(name, sa.BigInteger, nullable=False) for name in names]


def _key(name: str, target: str, ondelete: str | None = None) -> "sa.Column[str]":
    return sa.Column(name, sa.Text, sa.ForeignKey(target, ondelete=ondelete), primary_key=True)


def _xorb() -> "sa.Column[str]":
    return _key("xorb", "xorbs.id", ondelete="CASCADE")


def _index(table: str, *columns: str, unique: bool = False) -> None:
    op.create_index(f"ix_{table}_{'_'.join(columns)}", table, list(columns), unique=unique)
