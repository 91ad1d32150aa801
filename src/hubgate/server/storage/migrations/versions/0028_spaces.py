"""Adds Spaces that the hub runs: their state, settings, logs, and the requests that are forwarded to them."""

import sqlalchemy as sa
from alembic import op

revision = "0028"
down_revision = "0027"


def upgrade() -> None:
    _create_spaces()
    op.create_table(
        "space_processes",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("heartbeat", sa.BigInteger, nullable=False),
        sa.Column("machine", sa.Text, nullable=False),
    )
    for table, kind in (("space_secrets", sa.LargeBinary), ("space_variables", sa.Text)):
        op.create_table(
            table,
            _repo_id(),
            sa.Column("key", sa.Text, primary_key=True),
            sa.Column("value", kind, nullable=False),
            sa.Column("description", sa.Text, nullable=False),
            sa.Column("updated_at", sa.BigInteger, nullable=False),
        )
    op.create_table(
        "space_logs",
        _repo_id(),
        sa.Column("kind", sa.Text, primary_key=True),
        sa.Column("n", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "space_requests",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("repo_id", sa.Text, sa.ForeignKey("spaces.repo_id", ondelete="CASCADE"), nullable=False),
        sa.Column("waiting_process", sa.Text, nullable=False),
        sa.Column("request", sa.LargeBinary, nullable=False),
        sa.Column("sent_at", sa.BigInteger),
        sa.Column("answer", sa.LargeBinary),
        sa.Column("expires_at", sa.BigInteger, nullable=False),
    )
    op.create_index("ix_space_requests_repo_id", "space_requests", ["repo_id"])
    op.create_index("ix_space_requests_expires_at", "space_requests", ["expires_at"])
    _create_partial_index("space_requests", "answered", "waiting_process", "answer IS NOT NULL")


def _create_spaces() -> None:
    op.create_table(
        "spaces",
        _repo_id(),
        sa.Column("sdk", sa.Text, nullable=False),
        sa.Column("wanted", sa.Text, nullable=False, server_default="run"),
        sa.Column("version", sa.BigInteger, nullable=False, server_default="1"),
        sa.Column("tried_version", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("factory_version", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("stage", sa.Text, nullable=False),
        sa.Column("stage_at", sa.BigInteger, nullable=False),
        sa.Column("message", sa.Text, nullable=False),
        sa.Column("running_version", sa.BigInteger),
        sa.Column("running_sha", sa.Text),
        sa.Column("sleep_seconds", sa.BigInteger),
        sa.Column("last_request_at", sa.BigInteger, nullable=False),
        sa.Column("failures", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("process", sa.Text),
        sa.Column("used_cpu", sa.BigInteger),
        sa.Column("used_memory", sa.BigInteger),
        sa.Column("used_processes", sa.BigInteger),
        sa.Column("build_lines", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("run_lines", sa.BigInteger, nullable=False, server_default="0"),
    )
    _create_partial_index("spaces", "process", "process", "process IS NOT NULL")


def _repo_id() -> "sa.Column[str]":
    return sa.Column("repo_id", sa.Text, sa.ForeignKey("repos.id", ondelete="CASCADE"), primary_key=True)


def _create_partial_index(table: str, name: str, column: str, condition: str) -> None:
    where = sa.text(condition)
    op.create_index(f"ix_{table}_{name}", table, [column], sqlite_where=where, postgresql_where=where)
