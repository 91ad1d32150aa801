"""SQL statements for discussions and pull requests, their participants, and lists of them."""

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import asdict

from hubgate.server.hub.discussions.entries.model import UserLabel
from hubgate.server.hub.discussions.model import Discussion
from hubgate.server.hub.repos.model import Repo, pull_request_of
from hubgate.server.hub.repos.store import OWNERS, REPO
from hubgate.server.storage.database import Database, Tx
from hubgate.server.storage.sqltext import Params, containing, insert_row

_COLUMNS = "id, repo_id, num, title, status, base, author_id, created_at, closed_by, pinned, merge_sha, updated_at"
DISCUSSION = ", ".join(f"d.{column}" for column in _COLUMNS.split(", "))

# The column `description` is no longer used: the first entry has the text.
_ADD = insert_row(f"INSERT INTO discussions ({_COLUMNS}, description)")


async def add(tx: Tx, discussion: Discussion) -> None:
    await tx.exec(_ADD, asdict(discussion) | {"description": ""})


async def find(tx: Tx | Database, repo_id: str, num: int) -> Discussion | None:
    row = await tx.one(
        f"SELECT {_COLUMNS} FROM discussions WHERE repo_id = :repo_id AND num = :num", {"repo_id": repo_id, "num": num}
    )
    return Discussion(*row) if row else None


async def accepts_commits(tx: Tx | Database, repo_id: str, ref: str) -> bool:
    """Whether the ref is that of an open or draft pull request."""
    number = pull_request_of(ref)
    found = await find(tx, repo_id, number) if number else None
    return found is not None and found.accepts_commits


async def latest_open_pull_request(tx: Tx | Database, repo_id: str, author_id: str) -> Discussion | None:
    """The latest pull request of this author that accepts commits."""
    row = await tx.one(
        f"""
        SELECT {_COLUMNS} FROM discussions
        WHERE repo_id = :repo_id AND author_id = :author_id AND base IS NOT NULL AND status IN ('draft', 'open')
        ORDER BY num DESC LIMIT 1
        """,
        {"repo_id": repo_id, "author_id": author_id},
    )
    return Discussion(*row) if row else None


async def update(tx: Tx, discussion: Discussion) -> None:
    """Store the fields of a discussion that can change. The transaction must have locked the repo."""
    await tx.exec(
        """
        UPDATE discussions SET title = :title, status = :status, closed_by = :closed_by, pinned = :pinned,
            merge_sha = :merge_sha, updated_at = :updated_at
        WHERE repo_id = :repo_id AND num = :num
        """,
        {
            "repo_id": discussion.repo_id,
            "num": discussion.num,
            "title": discussion.title,
            "status": discussion.status,
            "closed_by": discussion.closed_by,
            "pinned": discussion.pinned,
            "merge_sha": discussion.merge_sha,
            "updated_at": discussion.updated_at,
        },
    )


async def touch(tx: Tx, repo_id: str, num: int, now: int) -> None:
    """Set the time of the latest activity."""
    await tx.exec(
        "UPDATE discussions SET updated_at = :now WHERE repo_id = :repo_id AND num = :num",
        {"repo_id": repo_id, "num": num, "now": now},
    )


async def remove(tx: Tx, repo_id: str, num: int) -> None:
    """Delete a discussion with its entries, reactions and participants."""
    for table in ("discussion_participants", "discussion_entries", "discussions"):
        await tx.exec(f"DELETE FROM {table} WHERE repo_id = :repo_id AND num = :num", {"repo_id": repo_id, "num": num})


# Participants.

_ADD_PARTICIPANT = insert_row(
    "INSERT INTO discussion_participants (repo_id, num, user_id, mentioned_at)",
    """
    ON CONFLICT (repo_id, num, user_id) DO UPDATE SET
        mentioned_at = COALESCE(excluded.mentioned_at, discussion_participants.mentioned_at)
    """,
)


async def add_participants(
    tx: Tx, repo_id: str, num: int, user_ids: Iterable[str], mentioned_at: int | None = None
) -> None:
    """Add users to a discussion. `mentioned_at` is set if an entry mentions them."""
    for user_id in user_ids:
        await tx.exec(
            _ADD_PARTICIPANT, {"repo_id": repo_id, "num": num, "user_id": user_id, "mentioned_at": mentioned_at}
        )


async def remove_mention(tx: Tx, repo_id: str, num: int, user_id: str, initial_participant: str) -> None:
    """Clear the mention of a user, who no longer takes part unless they are the initial participant or wrote an entry.
    The transaction must have locked the repo.
    """
    params: Params = {"repo_id": repo_id, "num": num, "user_id": user_id}
    of_user = "repo_id = :repo_id AND num = :num AND user_id = :user_id"
    await tx.exec(f"UPDATE discussion_participants SET mentioned_at = NULL WHERE {of_user}", params)
    await tx.exec(
        f"""
        DELETE FROM discussion_participants WHERE {of_user} AND user_id <> :initial_participant AND NOT EXISTS (
            SELECT 1 FROM discussion_entries e
            WHERE e.repo_id = :repo_id AND e.num = :num AND e.author_id = :user_id
        )
        """,
        {**params, "initial_participant": initial_participant},
    )


# Whether the user `u` may see the repo `r`: Action.REPO_SEE in access/policy.py, without the limits of a token.
MAY_SEE = """
    (r.private = 0 OR r.owner_id = u.id OR EXISTS (
        SELECT 1 FROM memberships m WHERE m.org_id = r.owner_id AND m.user_id = u.id
    ))
"""


async def readers_named(tx: Tx, repo_id: str, names: Sequence[str]) -> list[str]:
    """The ids of the users with these lower-case names who may see the repo."""
    found = []
    for name in names:
        row = await tx.one(
            f"""
            SELECT u.id FROM names n JOIN users u ON u.id = n.owner_id JOIN repos r ON r.id = :repo_id
            WHERE n.key = :name AND n.kind = 'user' AND n.current = 1 AND u.disabled_at IS NULL AND {MAY_SEE}
            """,
            {"repo_id": repo_id, "name": name},
        )
        if row is not None:
            found.append(row["id"])
    return found


class MailRecipient(Struct, frozen=True):
    user_id: str
    email: str


async def mail_recipients(tx: Tx, repo_id: str, num: int, except_for: str) -> list[MailRecipient]:
    """The participants, without `except_for`, who want mail, have a verified address and may see the repo."""
    rows = await tx.all(
        f"""
        SELECT u.id, u.email FROM discussion_participants p JOIN users u ON u.id = p.user_id
        JOIN repos r ON r.id = p.repo_id
        WHERE p.repo_id = :repo_id AND p.num = :num AND u.id <> :except_for AND u.discussion_mail = 1
            AND u.disabled_at IS NULL AND u.email_verified_at IS NOT NULL AND {MAY_SEE} ORDER BY u.id
        """,
        {"repo_id": repo_id, "num": num, "except_for": except_for},
    )
    return [MailRecipient(*row) for row in rows]


class OwnDiscussion(Struct, frozen=True):
    """An open discussion that a user takes part in."""

    discussion: Discussion
    is_mentioned: bool
    repo: Repo


async def open_with_participant(tx: Tx, user_id: str, limit: int) -> list[OwnDiscussion]:
    """Open discussions that a user takes part in and may see, latest activity first."""
    rows = await tx.all(
        f"""
        SELECT {DISCUSSION}, p.mentioned_at, {REPO} FROM discussion_participants p
        JOIN discussions d ON d.repo_id = p.repo_id AND d.num = p.num
        JOIN repos r ON r.id = p.repo_id {OWNERS} JOIN users reader ON reader.id = p.user_id
        WHERE p.user_id = :user_id AND d.status IN ('draft', 'open') AND {MAY_SEE.replace("u.id", "reader.id")}
        ORDER BY d.updated_at DESC, d.id DESC LIMIT :limit
        """,
        {"user_id": user_id, "limit": limit},
    )
    width = len(_COLUMNS.split(", "))
    return [
        OwnDiscussion(Discussion(*found[:width]), found[width] is not None, Repo(*found[width + 1 :]))
        for found in map(tuple, rows)
    ]


async def count_public_by(tx: Tx, user_id: str) -> int:
    """The number of discussions and pull requests that a user opened in public repos."""
    row = await tx.one(
        """
        SELECT count(*) AS n FROM discussion_participants p
        JOIN discussions d ON d.repo_id = p.repo_id AND d.num = p.num JOIN repos r ON r.id = p.repo_id
        WHERE p.user_id = :user_id AND d.author_id = :user_id AND r.private = 0
        """,
        {"user_id": user_id},
    )
    return int(row["n"]) if row else 0


class OwnComment(Struct, frozen=True):
    """A comment or description that a user wrote."""

    repo: str
    repo_type: str
    num: int
    title: str
    created_at: int
    text: str
    repo_id: str
    position: int


async def comments_by(tx: Tx, user_id: str, after: tuple[str, int, int], limit: int) -> list[OwnComment]:
    """A user's visible comments in repos that the user may see, ordered by repo id, discussion number and position.
    `after` has these three values of the last comment that was read.
    """
    repo_id, num, position = after
    rows = await tx.all(
        f"""
        SELECT COALESCE(o.name, owner.name) || '/' || r.name, r.type, d.num, d.title, e.created_at, e.text, e.repo_id,
            e.position
        FROM discussion_participants p JOIN discussions d ON d.repo_id = p.repo_id AND d.num = p.num
        JOIN discussion_entries e ON e.repo_id = p.repo_id AND e.num = p.num AND e.author_id = p.user_id
        JOIN repos r ON r.id = p.repo_id JOIN users u ON u.id = p.user_id
        LEFT JOIN users owner ON r.owner_kind = 'user' AND owner.id = r.owner_id
        LEFT JOIN organizations o ON r.owner_kind = 'org' AND o.id = r.owner_id
        WHERE p.user_id = :user_id AND e.type = 'comment' AND e.hidden_by IS NULL AND {MAY_SEE}
            AND (p.repo_id, p.num) >= (:repo_id, :num)
            AND (p.repo_id, p.num, e.position) > (:repo_id, :num, :position)
        ORDER BY p.repo_id, p.num, e.position LIMIT :limit
        """,
        {"user_id": user_id, "repo_id": repo_id, "num": num, "position": position, "limit": limit},
    )
    return [OwnComment(*row) for row in rows]


# Lists.


class DiscussionFilter(Struct, frozen=True):
    """The filters of a list of discussions. A field that is None does not filter."""

    pull_requests: bool | None = None
    statuses: tuple[str, ...] | None = None
    # A user's name.
    author: str | None = None
    # A part of the title.
    search: str | None = None


class ListedDiscussion(Struct, frozen=True):
    discussion: Discussion
    # None if the user was deleted.
    author: UserLabel | None
    # Comments after the description.
    comments: int


async def page(
    tx: Tx, repo_id: str, discussion_filter: DiscussionFilter, start: int, limit: int, *, pinned_first: bool = False
) -> tuple[list[ListedDiscussion], int]:
    """A page of discussions, highest number first, and the total number."""
    params: dict[str, str | int] = {"repo_id": repo_id}
    conditions = ["d.repo_id = :repo_id"]
    if discussion_filter.pull_requests is not None:
        conditions.append("d.base IS NOT NULL" if discussion_filter.pull_requests else "d.base IS NULL")
    if discussion_filter.statuses is not None:
        params |= {f"status_{number}": status for number, status in enumerate(discussion_filter.statuses)}
        conditions.append(f"d.status IN ({', '.join(f':status_{n}' for n in range(len(discussion_filter.statuses)))})")
    if discussion_filter.author is not None:
        params["author"] = discussion_filter.author.lower()
        conditions.append("d.author_id = (SELECT n.owner_id FROM names n WHERE n.key = :author)")
    if discussion_filter.search is not None:
        params["search"] = containing(discussion_filter.search)
        conditions.append("lower(d.title) LIKE lower(:search) ESCAPE '!'")
    where = " AND ".join(conditions)
    total = await tx.one(f"SELECT count(*) AS n FROM discussions d WHERE {where}", params)
    rows = await tx.all(
        f"""
        SELECT {DISCUSSION}, u.name AS author, u.fullname, (
            SELECT count(*) FROM discussion_entries e
            WHERE e.repo_id = d.repo_id AND e.num = d.num AND e.type = 'comment' AND e.position > 1
        ) AS comments
        FROM discussions d LEFT JOIN users u ON u.id = d.author_id
        WHERE {where} ORDER BY {"d.pinned DESC, " if pinned_first else ""}d.num DESC LIMIT :limit OFFSET :start
        """,
        {**params, "start": start, "limit": limit},
    )
    found = [
        ListedDiscussion(
            Discussion(*tuple(row)[:-3]),
            UserLabel(row["author"], row["fullname"]) if row["author"] is not None else None,
            int(row["comments"]),
        )
        for row in rows
    ]
    return found, int(total["n"]) if total else 0


async def count(tx: Tx | Database, repo_id: str) -> int:
    row = await tx.one("SELECT count(*) AS n FROM discussions WHERE repo_id = :repo_id", {"repo_id": repo_id})
    return int(row["n"]) if row else 0
