"""Repos, their refs, discussions, large files and events."""

from sqlalchemy import BigInteger, Column, ForeignKey, Index, LargeBinary, Table, Text, text

from hubgate.server.storage.schema.base import metadata, owner


def _repo(*, key: bool = False) -> Column[str]:
    return Column("repo_id", Text, ForeignKey("repos.id", ondelete="CASCADE"), primary_key=key, nullable=False)


# Its objects lie in a folder named by its id; its refs are below. An owner that goes takes its repos along in the same
# transaction (hub/repos/removing.py), so that each leaves its event.
repos = Table(
    "repos",
    metadata,
    Column("id", Text, primary_key=True),
    # "model", "dataset" or "space".
    Column("type", Text, nullable=False),
    # "user" or "org".
    Column("owner_kind", Text, nullable=False),
    Column("owner_id", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("private", BigInteger, nullable=False),
    # "" or how requests for access are answered: "auto" or "manual".
    Column("gated", Text, nullable=False),
    Column("discussions_disabled", BigInteger, nullable=False),
    # What a space is built with; "" for the others.
    Column("sdk", Text, nullable=False),
    Column("creator_id", Text, nullable=False),
    # The app through which it was made.
    Column("creator_client", Text),
    # What refs/heads/main points to, beside its row in `refs`, for lists.
    Column("head_sha", Text),
    # JSON: the front matter of its README, and the tags that follow from it.
    Column("card", Text, nullable=False),
    Column("tags", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    # Grows with every change of its refs: a copy of them on disk that carries a lower one is behind.
    Column("generation", BigInteger, nullable=False),
    # The numbers of its latest event and of its latest discussion.
    Column("last_seq", BigInteger, nullable=False),
    Column("last_discussion", BigInteger, nullable=False),
    Index(None, "owner_id", "type"),
    Index(None, "type", "updated_at", "id"),
    Index(None, "type", "created_at", "id"),
)

# Every name that a repo has, and those that redirect to it: no other repo gets one of them until it is unlinked.
repo_names = Table(
    "repo_names",
    metadata,
    Column("owner_id", Text, primary_key=True),
    Column("type", Text, primary_key=True),
    # Lower case.
    Column("key", Text, primary_key=True),
    _repo(),
    # 0 for a redirect.
    Column("current", BigInteger, nullable=False),
    # When the repo left this name; null for a present name, and for those left before this was stored.
    Column("left_at", BigInteger),
    # The id of the user who allowed it to lead out of its namespace.
    Column("allowed_by", Text),
    Index(None, "repo_id"),
    sqlite_with_rowid=False,
)

_UNCOUNTED = text("commits IS NULL")

# The truth about branches, tags and pull requests; refs on disk are a copy for git (hub/repos/copied_refs.py).
refs = Table(
    "refs",
    metadata,
    _repo(key=True),
    # In full, such as refs/heads/main.
    Column("name", Text, primary_key=True),
    Column("sha", Text, nullable=False),
    # How many commits lead to it; null until they are counted (hub/repos/counting.py).
    Column("commits", BigInteger),
    Index(
        "ix_refs_uncounted",
        "repo_id",
        "name",
        sqlite_where=_UNCOUNTED,
        postgresql_where=_UNCOUNTED,
    ),
    sqlite_with_rowid=False,
)

discussions = Table(
    "discussions",
    metadata,
    _repo(key=True),
    Column("num", BigInteger, primary_key=True),
    Column("id", Text, nullable=False, unique=True),
    Column("title", Text, nullable=False),
    Column("description", Text, nullable=False),
    # "draft", "open", "closed" or "merged".
    Column("status", Text, nullable=False),
    # The ref a pull request is for; null for a plain discussion.
    Column("base", Text),
    # The id of a user, who may be gone by now.
    Column("author_id", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    # The id of the user who closed it; null while it is open.
    Column("closed_by", Text),
    Index(None, "repo_id", "author_id"),
    sqlite_with_rowid=False,
)

_OF_GUESTS = text("guest = 1")

# Which large files a repo may use. The file itself is shared by all repos that hold it, so only one that was sent it,
# bytes and all, has a row here: knowing a hash must not be enough to read somebody's file.
lfs_links = Table(
    "lfs_links",
    metadata,
    _repo(key=True),
    # SHA-256, hex.
    Column("oid", Text, primary_key=True),
    Column("size", BigInteger, nullable=False),
    # What the content would be called as a git blob, for clients that sent it as one.
    Column("blob_sha", Text),
    Column("created_at", BigInteger, nullable=False),
    # Only guests sent it: it is not part of the owner's storage, and goes once nothing needs it (hub/guests/sweep.py).
    Column("guest", BigInteger, nullable=False, server_default="0"),
    # The repo's generation when a pull request was last seen to need it.
    Column("checked", BigInteger),
    Index(None, "oid"),
    Index("ix_lfs_links_of_guests", "repo_id", "oid", sqlite_where=_OF_GUESTS, postgresql_where=_OF_GUESTS),
    sqlite_with_rowid=False,
)

# The bytes that users without the right to write hold in repos (hub/guests/charging.py).
_WAITING = text("num = 0")

guest_bytes = Table(
    "guest_bytes",
    metadata,
    owner("users", "user_id", key=True),
    _repo(key=True),
    # The pull request; 0 until one takes the bytes up, and negative for commits that it had and has no more.
    Column("num", BigInteger, primary_key=True, autoincrement=False),
    # Of a large file; empty for what is stored in git.
    Column("oid", Text, primary_key=True),
    Column("bytes", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    # The repo's generation when the pull request was last seen not to be merged.
    Column("checked", BigInteger),
    Index(None, "repo_id", "num"),
    Index(None, "repo_id", "oid"),
    Index("ix_guest_bytes_waiting", "updated_at", sqlite_where=_WAITING, postgresql_where=_WAITING),
    sqlite_with_rowid=False,
)

# Commits that came by a pull request and were not on a branch or tag when they were last looked at
# (hub/guests/marked_commits.py).
pull_request_commits = Table(
    "pull_request_commits",
    metadata,
    _repo(key=True),
    Column("sha", Text, primary_key=True),
    # Whether a pull request's ref led to it at that time; otherwise it is not shown.
    Column("is_reachable", BigInteger, nullable=False),
    # The repo's generation at that time; null until then.
    Column("checked", BigInteger),
    sqlite_with_rowid=False,
)

_UNFANNED = text("fanned_at IS NULL")

# Every change of a repo, in the order in which it happened there, as watchers will be told. Outlives its repo.
events = Table(
    "events",
    metadata,
    Column("id", Text, primary_key=True),
    Column("repo_id", Text, nullable=False),
    # Counts from 1 in each repo, without a gap.
    Column("repo_seq", BigInteger, nullable=False),
    Column("repo_type", Text, nullable=False),
    Column("owner_id", Text, nullable=False),
    # Whether the repo was private after the change.
    Column("private", BigInteger, nullable=False),
    Column("scope", Text, nullable=False),
    Column("action", Text, nullable=False),
    # JSON, frozen: all of the payload but the webhook's own part.
    Column("body", LargeBinary, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("fanned_at", BigInteger),
    # How many deliveries led to it, each by a receiver that changed something.
    Column("depth", BigInteger, nullable=False, server_default="0"),
    # The last webhook it was fanned out to; null until the first.
    Column("fan_cursor", Text),
    # Whether a user without the right to write caused it: such events have a webhook quota of their own.
    Column("guest", BigInteger, nullable=False, server_default="0"),
    Index(None, "repo_id", "repo_seq", unique=True),
    Index(
        "ix_events_unfanned",
        "repo_id",
        "repo_seq",
        sqlite_where=_UNFANNED,
        postgresql_where=_UNFANNED,
    ),
    Index(None, "created_at"),
)
