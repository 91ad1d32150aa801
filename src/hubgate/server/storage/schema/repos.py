"""Tables of repos, refs, discussions, large files and events."""

from sqlalchemy import BigInteger, Column, ForeignKey, Index, LargeBinary, Table, Text, text

from hubgate.server.storage.schema.base import metadata, owner


def _repo(*, key: bool = False) -> Column[str]:
    return Column("repo_id", Text, ForeignKey("repos.id", ondelete="CASCADE"), primary_key=key, nullable=False)


# A repo's objects are stored in a folder named after its id, its refs in `refs`. The transaction that deletes an owner
# also deletes the owner's repos (hub/repos/deletion.py), so that each deletion is recorded as an event.
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
    # How access requests are approved: "auto" or "manual"; "" if the repo is not gated.
    Column("gated", Text, nullable=False),
    Column("discussions_disabled", BigInteger, nullable=False),
    # The SDK of a space; "" for other repos.
    Column("sdk", Text, nullable=False),
    Column("creator_id", Text, nullable=False),
    # The app that created the repo.
    Column("creator_client", Text),
    # The commit of refs/heads/main, copied from `refs` for lists.
    Column("head_sha", Text),
    # JSON: the front matter of the README, and the tags derived from it.
    Column("card", Text, nullable=False),
    Column("tags", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    # Incremented by every change of refs: a copy on disk with a lower number is out of date.
    Column("generation", BigInteger, nullable=False),
    # The numbers of the latest event and the latest discussion.
    Column("last_seq", BigInteger, nullable=False),
    Column("last_discussion", BigInteger, nullable=False),
    Index(None, "owner_id", "type"),
    Index(None, "type", "updated_at", "id"),
    Index(None, "type", "created_at", "id"),
)

# The current name of each repo, and the names that redirect to it. No other repo may take a name until it is unlinked.
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
    # When the repo was renamed; null for a current name, and for redirects older than this column.
    Column("left_at", BigInteger),
    # The id of the user who allowed a redirect to another namespace.
    Column("allowed_by", Text),
    Index(None, "repo_id"),
    sqlite_with_rowid=False,
)

_UNCOUNTED = text("commits IS NULL")

# Branches, tags and pull requests. This table is authoritative; refs on disk are a copy (hub/repos/copied_refs.py).
refs = Table(
    "refs",
    metadata,
    _repo(key=True),
    # The full name, such as refs/heads/main.
    Column("name", Text, primary_key=True),
    Column("sha", Text, nullable=False),
    # The number of commits reachable from the ref; null until they are counted (hub/repos/commit_counts.py).
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
    # No longer used: the first entry has the text.
    Column("description", Text, nullable=False),
    # "draft", "open", "closed" or "merged".
    Column("status", Text, nullable=False),
    # The target ref of a pull request; null for a plain discussion.
    Column("base", Text),
    # A user id; the user may have been deleted.
    Column("author_id", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    # The id of the user who closed the discussion; null if it is not closed.
    Column("closed_by", Text),
    # 1 if the discussion is listed before the others.
    Column("pinned", BigInteger, nullable=False, server_default="0"),
    # The commit on the target branch that contains the pull request; null until the merge.
    Column("merge_sha", Text),
    # The time of the latest entry or edit.
    Column("updated_at", BigInteger, nullable=False, server_default="0"),
    Index(None, "repo_id", "author_id"),
    sqlite_with_rowid=False,
)

# Comments, commits, and changes of title and status. The first entry is the description, as a comment.
discussion_entries = Table(
    "discussion_entries",
    metadata,
    _repo(key=True),
    Column("num", BigInteger, primary_key=True, autoincrement=False),
    # From 1, in the order of the entries.
    Column("position", BigInteger, primary_key=True, autoincrement=False),
    Column("id", Text, nullable=False, unique=True),
    # "comment", "commit", "status-change" or "title-change".
    Column("type", Text, nullable=False),
    # A user id; the user may have been deleted.
    Column("author_id", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    # The text of a comment, empty once it is hidden; the subject of a commit; the new status or title.
    Column("text", Text, nullable=False),
    # The id of a commit; the old title. Null for other types.
    Column("detail", Text),
    # JSON: time and user id of each edit of a comment, oldest first. Former texts are not stored.
    Column("edits", Text, nullable=False, server_default="[]"),
    # The id of the user who hid the comment.
    Column("hidden_by", Text),
    Index(None, "repo_id", "num", "author_id"),
    sqlite_with_rowid=False,
)

discussion_reactions = Table(
    "discussion_reactions",
    metadata,
    Column("entry_id", Text, ForeignKey("discussion_entries.id", ondelete="CASCADE"), primary_key=True),
    Column("reaction", Text, primary_key=True),
    # The user may have been deleted.
    Column("user_id", Text, primary_key=True),
    Column("created_at", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

# The users to notify about a discussion: its author, commenters, mentioned users, and the owner or creator of the repo.
# They may have been deleted or have lost access.
discussion_participants = Table(
    "discussion_participants",
    metadata,
    _repo(key=True),
    Column("num", BigInteger, primary_key=True, autoincrement=False),
    Column("user_id", Text, primary_key=True),
    # When the user was last mentioned; null for a user who was not.
    Column("mentioned_at", BigInteger),
    Index(None, "user_id"),
    sqlite_with_rowid=False,
)

_OF_GUESTS = text("guest = 1")

# The large files that a repo may use. Repos share the stored file, so a repo gets a row only after the full content was
# uploaded to it: knowing a hash must not be enough to read another repo's file.
lfs_links = Table(
    "lfs_links",
    metadata,
    _repo(key=True),
    # SHA-256, hex.
    Column("oid", Text, primary_key=True),
    Column("size", BigInteger, nullable=False),
    # The id of the content as a git blob, for clients that sent it as a blob.
    Column("blob_sha", Text),
    Column("created_at", BigInteger, nullable=False),
    # 1 if only guests (users without write permission) uploaded the file: it does not count as the owner's storage, and
    # is deleted once it is not needed (hub/guests/sweep.py).
    Column("guest", BigInteger, nullable=False, server_default="0"),
    # The repo's generation when a pull request was last found to need the file. Null until a pull request refers to it;
    # until then only writers and the guest who uploaded the file can download it.
    Column("checked", BigInteger),
    Index(None, "oid"),
    Index("ix_lfs_links_of_guests", "repo_id", "oid", sqlite_where=_OF_GUESTS, postgresql_where=_OF_GUESTS),
    sqlite_with_rowid=False,
)

# Stored content that nothing refers to and that is about to be deleted (objects/deletions.py).
object_deletions = Table(
    "object_deletions",
    metadata,
    Column("key", Text, primary_key=True),
    # The first segment of the key, such as lfs.
    Column("kind", Text, nullable=False),
    Column("marked_at", BigInteger, nullable=False),
    # 1 once the deletion has begun: the content may be gone, and cannot be used before the row is deleted.
    Column("is_deleting", BigInteger, nullable=False),
    Index(None, "kind", "marked_at"),
    sqlite_with_rowid=False,
)

_WAITING = text("num = 0")

# Bytes that users without write permission store in repos (hub/guests/charges.py).
guest_bytes = Table(
    "guest_bytes",
    metadata,
    owner("users", "user_id", key=True),
    _repo(key=True),
    # The number of the discussion or pull request. Negative for bytes that stay charged after a merge: texts, replaced
    # commits, and commits that were never added to the pull request. 0 for a pull request that is not open yet, and for
    # large files until a pull request is known to use them.
    Column("num", BigInteger, primary_key=True, autoincrement=False),
    # The id of a large file; empty for git storage and texts.
    Column("oid", Text, primary_key=True),
    Column("bytes", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    # The repo's generation when the pull request was last found not to be merged.
    Column("checked", BigInteger),
    Index(None, "repo_id", "num"),
    Index(None, "repo_id", "oid"),
    Index("ix_guest_bytes_waiting", "updated_at", sqlite_where=_WAITING, postgresql_where=_WAITING),
    sqlite_with_rowid=False,
)

# Commits that were pushed to a pull request and were not on a branch or tag when last checked
# (hub/guests/marked_commits.py).
pull_request_commits = Table(
    "pull_request_commits",
    metadata,
    _repo(key=True),
    Column("sha", Text, primary_key=True),
    # Whether the commit was reachable from a pull request's ref when last checked; otherwise it is hidden.
    Column("is_reachable", BigInteger, nullable=False),
    # The repo's generation at the last check; null before the first.
    Column("checked", BigInteger),
    sqlite_with_rowid=False,
)

_UNFANNED = text("fanned_at IS NULL")
_MOVES = text("scope = 'repo' AND action = 'move'")

# Every change of a repo, in order, as it is delivered to webhooks. Events are retained after their repo is deleted.
events = Table(
    "events",
    metadata,
    Column("id", Text, primary_key=True),
    Column("repo_id", Text, nullable=False),
    # Consecutive in each repo, from 1.
    Column("repo_seq", BigInteger, nullable=False),
    Column("repo_type", Text, nullable=False),
    Column("owner_id", Text, nullable=False),
    # Whether the repo was private after the change.
    Column("private", BigInteger, nullable=False),
    Column("scope", Text, nullable=False),
    Column("action", Text, nullable=False),
    # JSON: the payload without the part that describes the webhook. Immutable, except that the text of a comment is
    # removed when the comment is hidden or its discussion is removed.
    Column("body", LargeBinary, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("fanned_at", BigInteger),
    # The number of deliveries in the chain that led to the event: a receiver that changes a repo causes another event.
    Column("depth", BigInteger, nullable=False, server_default="0"),
    # The last webhook that the event was fanned out to; null before the first.
    Column("fan_cursor", Text),
    # 1 if a user without write permission caused the event: such events have a separate webhook quota.
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
    # For dry runs of webhooks.
    Index(None, "owner_id", "created_at"),
    Index("ix_events_moves", "created_at", sqlite_where=_MOVES, postgresql_where=_MOVES),
)
