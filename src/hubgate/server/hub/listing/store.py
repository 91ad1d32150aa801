"""The statement behind every list of repos."""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from hubgate.server.access.sight import Sight
from hubgate.server.hub.repos.model import Repo
from hubgate.server.hub.repos.store import OWNERS, REPO
from hubgate.server.storage.database import Tx

# What a list can be sorted by; the others that clients name are not counted here.
COLUMNS = {"createdAt": "r.created_at", "lastModified": "r.updated_at"}
# More would make a statement longer than engines take; nobody is in so many organizations.
MOST_OWNERS = 501


@dataclass(frozen=True)
class Wanted:
    """What a list is asked for. Empty texts ask for nothing."""

    type: str = ""
    owner_id: str = ""
    # Any of these, if there are some.
    owners: Sequence[str] = ()
    # Every one of these is in namespace/name.
    searched: Sequence[str] = ()
    tags: Sequence[str] = ()
    gated: bool | None = None
    sort: str = "lastModified"
    descending: bool = True


async def page(tx: Tx, wanted: Wanted, sight: Sight, after: tuple[int, str] | None, most: int) -> list[Repo]:
    column = COLUMNS[wanted.sort]
    values: dict[str, str | int] = {"most": most}
    conditions = [_visible(sight, values)]
    if wanted.type:
        conditions.append("r.type = :type")
        values["type"] = wanted.type
    if wanted.owner_id:
        conditions.append("r.owner_id = :owner_id")
        values["owner_id"] = wanted.owner_id
    if wanted.owners:
        owners = {f"owner{number}": owner for number, owner in enumerate(wanted.owners[:MOST_OWNERS])}
        conditions.append(f"r.owner_id IN ({', '.join(f':{name}' for name in owners)})")
        values |= owners
    for number, text in enumerate(wanted.searched):
        conditions.append(f"lower(COALESCE(u.name, o.name) || '/' || r.name) LIKE :pattern{number} ESCAPE '\\'")
        values[f"pattern{number}"] = _containing(text.lower())
    for number, tag in enumerate(wanted.tags):
        # As it stands in the list. LIKE would look at upper and lower case on one engine only.
        conditions.append(f"replace(r.tags, :tag{number}, '') <> r.tags")
        values[f"tag{number}"] = msgspec.json.encode(tag).decode()
    if wanted.gated is not None:
        conditions.append("r.gated <> ''" if wanted.gated else "r.gated = ''")
    order = "DESC" if wanted.descending else "ASC"
    if after is not None:
        sign = "<" if wanted.descending else ">"
        conditions.append(f"({column}, r.id) {sign} (:after_value, :after_id)")
        values["after_value"], values["after_id"] = after
    rows = await tx.all(
        f"""
        SELECT {REPO} FROM repos r {OWNERS} WHERE {" AND ".join(conditions)}
        ORDER BY {column} {order}, r.id {order} LIMIT :most
        """,
        values,
    )
    return [Repo(*row) for row in rows]


def _visible(sight: Sight, values: dict[str, str | int]) -> str:
    seen = ["r.private = 0"]
    if sight.owners:
        seen.append(_owned_by(sight.owners, "owner", values))
    if sight.creators and sight.client_id is not None:
        values["created_through"] = sight.client_id
        seen.append(f"({_owned_by(sight.creators, 'creator', values)} AND r.creator_client = :created_through)")
    return f"({' OR '.join(seen)})"


def _owned_by(owners: Sequence[str], name: str, values: dict[str, str | int]) -> str:
    named = {f"{name}{number}": owner for number, owner in enumerate(owners[:MOST_OWNERS])}
    values.update(named)
    return f"r.owner_id IN ({', '.join(f':{each}' for each in named)})"


async def counts(tx: Tx, owner_id: str, sight: Sight) -> dict[str, int]:
    """By type; a type of which there are none is left out."""
    values: dict[str, str | int] = {"owner_id": owner_id}
    rows = await tx.all(
        f"""
        SELECT r.type, count(*) AS n FROM repos r
        WHERE r.owner_id = :owner_id AND {_visible(sight, values)} GROUP BY r.type
        """,
        values,
    )
    return {row["type"]: int(row["n"]) for row in rows}


async def used_storage(tx: Tx, owner_id: str, sight: Sight) -> int:
    """The bytes of large files in all repos of an owner that a caller may see: a share of more would reveal the size of
    private ones.
    """
    values: dict[str, str | int] = {"owner_id": owner_id}
    row = await tx.one(
        f"""
        SELECT COALESCE(SUM(l.size), 0) AS n FROM lfs_links l JOIN repos r ON r.id = l.repo_id
        WHERE r.owner_id = :owner_id AND l.guest = 0 AND {_visible(sight, values)}
        """,
        values,
    )
    return int(row["n"]) if row else 0


def _containing(part: str) -> str:
    escaped = part.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"
