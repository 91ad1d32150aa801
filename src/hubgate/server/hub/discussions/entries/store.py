"""SQL statements for the entries of discussions and the reactions to them."""

from collections.abc import Iterable, Sequence

from msgspec.structs import asdict

from hubgate.server.hub.discussions.entries.model import (
    COMMENT,
    COMMIT,
    MAX_ENTRIES,
    REACTIONS,
    Commit,
    Conversation,
    Entry,
    Reaction,
    UserLabel,
)
from hubgate.server.ids import new_id
from hubgate.server.storage.database import Database, Row, Tx
from hubgate.server.storage.sqltext import RowStatement, containing, insert_row

_COLUMNS = "id, position, type, author_id, created_at, text, detail, edits, hidden_by"
_OF_DISCUSSION = "repo_id = :repo_id AND num = :num"

_ADD = insert_row(f"INSERT INTO discussion_entries ({_COLUMNS}, repo_id, num)")


async def add(
    tx: Tx,
    repo_id: str,
    num: int,
    entry_type: str,
    author_id: str,
    text: str,
    now: int,
    detail: str | None = None,
) -> Entry:
    """Add an entry after all others. The transaction must have locked the repo."""
    position = await _last_position(tx, repo_id, num) + 1
    entry = Entry(new_id(now), position, entry_type, author_id, now, text, detail)
    await tx.exec(_ADD, asdict(entry) | {"repo_id": repo_id, "num": num})
    return entry


async def add_commits(tx: Tx, repo_id: str, num: int, author_id: str, commits: Sequence[Commit], now: int) -> None:
    """Add an entry for each commit, or only for the last ones if the discussion has no room for all of them. The
    transaction must have locked the repo.
    """
    position = await _last_position(tx, repo_id, num)
    room = max(MAX_ENTRIES - position, 0)
    rows = [
        asdict(Entry(new_id(now), position + number, COMMIT, author_id, now, commit.subject, commit.sha))
        | {"repo_id": repo_id, "num": num}
        for number, commit in enumerate(commits[max(len(commits) - room, 0) :], 1)
    ]
    if rows:
        await tx.exec_many(_ADD, rows)


async def _last_position(tx: Tx, repo_id: str, num: int) -> int:
    row = await tx.one(
        f"SELECT max(position) AS last FROM discussion_entries WHERE {_OF_DISCUSSION}", {"repo_id": repo_id, "num": num}
    )
    return int(row["last"] or 0) if row else 0


async def totals(tx: Tx, repo_id: str, num: int) -> tuple[int, int]:
    """The numbers of entries and of characters in them."""
    row = await tx.one(
        f"""
        SELECT count(*) AS entries, CAST(COALESCE(sum(length(text)), 0) AS bigint) AS characters
        FROM discussion_entries WHERE {_OF_DISCUSSION}
        """,
        {"repo_id": repo_id, "num": num},
    )
    return (int(row["entries"]), int(row["characters"])) if row else (0, 0)


async def count_by(tx: Tx, repo_id: str, num: int, author_id: str) -> int:
    """The number of entries by a user, except commits."""
    row = await tx.one(
        f"""
        SELECT count(*) AS n FROM discussion_entries
        WHERE {_OF_DISCUSSION} AND author_id = :author_id AND type <> '{COMMIT}'
        """,
        {"repo_id": repo_id, "num": num, "author_id": author_id},
    )
    return int(row["n"]) if row else 0


async def find(tx: Tx | Database, repo_id: str, num: int, entry_id: str) -> Entry | None:
    row = await tx.one(
        f"SELECT {_COLUMNS} FROM discussion_entries WHERE id = :id AND {_OF_DISCUSSION}",
        {"repo_id": repo_id, "num": num, "id": entry_id},
    )
    return Entry(*row) if row else None


async def update(tx: Tx, entry: Entry) -> None:
    """Store the text and the edits of a comment, and who hid it."""
    await tx.exec(
        "UPDATE discussion_entries SET text = :text, edits = :edits, hidden_by = :hidden_by WHERE id = :id",
        {"id": entry.id, "text": entry.text, "edits": entry.edits, "hidden_by": entry.hidden_by},
    )


async def visible_comments(tx: Tx, repo_id: str, num: int) -> list[Entry]:
    rows = await tx.all(
        f"""
        SELECT {_COLUMNS} FROM discussion_entries
        WHERE {_OF_DISCUSSION} AND type = '{COMMENT}' AND hidden_by IS NULL
        """,
        {"repo_id": repo_id, "num": num},
    )
    return [Entry(*row) for row in rows]


async def visible_texts_containing(tx: Tx, repo_id: str, num: int, part: str) -> list[str]:
    """The texts of comments that are not hidden and contain `part`."""
    rows = await tx.all(
        f"""
        SELECT text FROM discussion_entries
        WHERE {_OF_DISCUSSION} AND type = '{COMMENT}' AND hidden_by IS NULL AND text LIKE :part ESCAPE '!'
        """,
        {"repo_id": repo_id, "num": num, "part": containing(part)},
    )
    return [row["text"] for row in rows]


async def visible_among(tx: Tx, entry_ids: Iterable[str]) -> set[str]:
    """The ids of entries that exist and are not hidden."""
    rows = await tx.each(_VISIBLE, [{"id": entry_id} for entry_id in entry_ids])
    return {row["id"] for row in rows}


_VISIBLE = RowStatement(
    "SELECT e.id FROM discussion_entries e WHERE e.id = :id AND e.hidden_by IS NULL", {"id": "text"}
)


# Reactions.

_ADD_REACTION = insert_row("INSERT INTO discussion_reactions (entry_id, reaction, user_id, created_at)")


async def toggle_reaction(tx: Tx, entry_id: str, reaction: str, user_id: str, now: int) -> None:
    """Add a reaction, or remove it if the user has it already. The transaction must have locked the repo."""
    params = {"entry_id": entry_id, "reaction": reaction, "user_id": user_id}
    removed = await tx.exec(
        "DELETE FROM discussion_reactions WHERE entry_id = :entry_id AND reaction = :reaction AND user_id = :user_id",
        params,
    )
    if not removed:
        await tx.exec(_ADD_REACTION, {**params, "created_at": now})


async def remove_reactions(tx: Tx, entry_id: str) -> None:
    await tx.exec("DELETE FROM discussion_reactions WHERE entry_id = :entry_id", {"entry_id": entry_id})


# Conversations.


async def conversation(tx: Tx, repo_id: str, num: int) -> Conversation:
    """All entries of a discussion."""
    rows = await tx.all(
        f"SELECT {_COLUMNS} FROM discussion_entries WHERE {_OF_DISCUSSION} ORDER BY position",
        {"repo_id": repo_id, "num": num},
    )
    reactions = await tx.all(
        """
        SELECT x.entry_id, x.reaction, u.name FROM discussion_reactions x
        JOIN discussion_entries e ON e.id = x.entry_id JOIN users u ON u.id = x.user_id
        WHERE e.repo_id = :repo_id AND e.num = :num ORDER BY x.created_at, u.id
        """,
        {"repo_id": repo_id, "num": num},
    )
    return await _with_users(tx, [Entry(*row) for row in rows], reactions)


async def conversation_of(tx: Tx, entry: Entry) -> Conversation:
    """A conversation that consists of one entry."""
    reactions = await tx.all(
        """
        SELECT x.entry_id, x.reaction, u.name FROM discussion_reactions x JOIN users u ON u.id = x.user_id
        WHERE x.entry_id = :entry_id ORDER BY x.created_at, u.id
        """,
        {"entry_id": entry.id},
    )
    return await _with_users(tx, [entry], reactions)


async def _with_users(tx: Tx, entries: Sequence[Entry], reactions: Iterable[Row]) -> Conversation:
    users = {entry.author_id for entry in entries} | {entry.hidden_by for entry in entries if entry.hidden_by}
    users |= {edit.user_id for entry in entries if entry.edits != "[]" for edit in entry.edit_list}
    grouped: dict[str, dict[str, Reaction]] = {}
    for row in reactions:
        of_entry = grouped.setdefault(row["entry_id"], {})
        of_entry.setdefault(row["reaction"], Reaction(row["reaction"], [])).users.append(row["name"])
    # In a fixed order, so that the response for an unchanged conversation has the same bytes.
    by_entry = {
        entry_id: [found[reaction] for reaction in REACTIONS if reaction in found]
        for entry_id, found in grouped.items()
    }
    return Conversation(entries, await labels(tx, users), by_entry)


async def labels(tx: Tx, user_ids: Iterable[str]) -> dict[str, UserLabel]:
    """Names of the users that still exist, by id."""
    rows = await tx.each(_LABEL, [{"id": user_id} for user_id in user_ids])
    return {row["id"]: UserLabel(row["name"], row["fullname"]) for row in rows}


_LABEL = RowStatement("SELECT u.id, u.name, u.fullname FROM users u WHERE u.id = :id", {"id": "text"})
