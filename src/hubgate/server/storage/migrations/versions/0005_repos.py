"""Adds repos, refs, large files, discussions and events."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    _repos()
    _refs()
    _large_files()
    _discussions()
    _events()


def _text(name: str, *, key: bool = False, nullable: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.Text, primary_key=key, nullable=nullable)


def _number(name: str, *, key: bool = False, nullable: bool = False) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, primary_key=key, nullable=nullable)


def _repo(*, key: bool = False) -> sa.Column[str]:
    repo = sa.ForeignKey("repos.id", ondelete="CASCADE")
    return sa.Column("repo_id", sa.Text, repo, primary_key=key, nullable=False)


def _index(table: str, *columns: str, unique: bool = False) -> None:
    op.create_index(f"ix_{table}_{'_'.join(columns)}", table, list(columns), unique=unique)


def _repos() -> None:
    op.create_table(
        "repos",
        _text("id", key=True),
        _text("type"),
        _text("owner_kind"),
        _text("owner_id"),
        _text("name"),
        _number("private"),
        _text("gated"),
        _number("discussions_disabled"),
        _text("sdk"),
        _text("creator_id"),
        _text("creator_client", nullable=True),
        _text("head_sha", nullable=True),
        _text("card"),
        _text("tags"),
        _number("created_at"),
        _number("updated_at"),
        _number("generation"),
        _number("last_seq"),
        _number("last_discussion"),
    )
    _index("repos", "owner_id", "type")
    _index("repos", "type", "updated_at", "id")
    _index("repos", "type", "created_at", "id")
    op.create_table(
        "repo_names",
        _text("owner_id", key=True),
        _text("type", key=True),
        _text("key", key=True),
        _repo(),
        _number("current"),
        sqlite_with_rowid=False,
    )
    _index("repo_names", "repo_id")


def _refs() -> None:
    op.create_table("refs", _repo(key=True), _text("name", key=True), _text("sha"), sqlite_with_rowid=False)


def _large_files() -> None:
    op.create_table(
        "lfs_links",
        _repo(key=True),
        _text("oid", key=True),
        _number("size"),
        _text("blob_sha", nullable=True),
        _number("created_at"),
        sqlite_with_rowid=False,
    )
    _index("lfs_links", "oid")


def _discussions() -> None:
    op.create_table(
        "discussions",
        _repo(key=True),
        _number("num", key=True),
        _text("id"),
        _text("title"),
        _text("description"),
        _text("status"),
        _text("base", nullable=True),
        _text("author_id"),
        _number("created_at"),
        sa.UniqueConstraint("id", name="uq_discussions_id"),
        sqlite_with_rowid=False,
    )


def _events() -> None:
    op.create_table(
        "events",
        _text("id", key=True),
        _text("repo_id"),
        _number("repo_seq"),
        _text("repo_type"),
        _text("owner_id"),
        _number("private"),
        _text("scope"),
        _text("action"),
        sa.Column("body", sa.LargeBinary, nullable=False),
        _number("created_at"),
        _number("fanned_at", nullable=True),
    )
    _index("events", "repo_id", "repo_seq", unique=True)
    _index("events", "created_at")
