"""SQL statements on audit entries, batches and heads."""

import json
from collections.abc import Sequence
from operator import attrgetter

from msgspec.structs import asdict

from hubgate.server.audit.filters import Filter
from hubgate.server.audit.model import Batch, Entry, Head, ListedEntry
from hubgate.server.storage.database import Database, Row, Tx
from hubgate.server.storage.sqltext import Kind, Params, beginning, columns_of, containing, insert_row

# Columns in the order of model.Entry, model.Batch and model.Head.
ENTRY = """e.id, e.org_id, e.created_at, e.type, e.message, e.author_id, e.author_name, e.ip, e.user_agent, e.data,
    e.token, e.oauth, e.token_id, e.batch, e.position"""
BATCH = "b.org_id, b.seq, b.entries, b.hash, b.sealed_at, b.dropped_at"
HEAD = "h.org_id, h.seq, h.hash, h.dropped, h.broken, h.mac"

_LISTED = f"""
    SELECT {ENTRY},
        CASE WHEN e.author_id IS NOT NULL AND u.id IS NULL THEN 1 ELSE 0 END AS author_gone,
        CASE WHEN e.token_id IS NOT NULL AND t.id IS NULL THEN 1 ELSE 0 END AS token_gone
    FROM audit_entries e LEFT JOIN users u ON u.id = e.author_id LEFT JOIN access_tokens t ON t.id = e.token_id
"""

_ADD = insert_row(f"INSERT INTO audit_entries ({ENTRY.replace('e.', '')})")
_ADD_BATCH = insert_row(
    f"INSERT INTO audit_batches ({BATCH.replace('b.', '')})", "ON CONFLICT DO NOTHING RETURNING seq"
)
_ADD_HEAD = insert_row(f"INSERT INTO audit_heads ({HEAD.replace('h.', '')})", "ON CONFLICT DO NOTHING RETURNING org_id")


async def add(tx: Tx, entry: Entry) -> None:
    await tx.exec(_ADD, asdict(entry))


# For a batch of another subject that records an entry with each of its rows: more columns, and its second statement.
_IN_BATCH = columns_of(
    text="id org_id type message author_id author_name ip user_agent data token oauth token_id", bigint="created_at"
)
ENTRY_COLUMNS: dict[str, Kind] = {f"entry_{name}": kind for name, kind in _IN_BATCH.items()}
ADD_IN_BATCH = f"INSERT INTO audit_entries ({', '.join(_IN_BATCH)}) SELECT {', '.join(ENTRY_COLUMNS)} FROM done"


_batch_values = attrgetter(*_IN_BATCH)


def batch_values(entry: Entry) -> Params:
    return dict(zip(ENTRY_COLUMNS, _batch_values(entry), strict=True))


# Sealing ------------------------------------------------------------------------------------------------------------


NEXT_UNSEALED = (
    "SELECT org_id FROM audit_entries WHERE batch IS NULL AND org_id > :after ORDER BY batch, org_id LIMIT 1"
)


async def next_unsealed(db: Database, after: str) -> str | None:
    """The next organization, by id, that has entries to seal. A single index lookup, however long the logs are."""
    row = await db.one(NEXT_UNSEALED, {"after": after})
    return row["org_id"] if row else None


async def unsealed(tx: Tx, org_id: str, limit: int) -> list[Entry]:
    rows = await tx.all(
        f"""
        SELECT {ENTRY} FROM audit_entries e WHERE e.org_id = :org_id AND e.batch IS NULL
        ORDER BY e.batch, e.created_at, e.id LIMIT :limit
        """,
        {"org_id": org_id, "limit": limit},
    )
    return [Entry(*row) for row in rows]


async def head(tx: Tx | Database, org_id: str) -> Head | None:
    row = await tx.one(f"SELECT {HEAD} FROM audit_heads h WHERE h.org_id = :org_id", {"org_id": org_id})
    return Head(*row) if row else None


async def add_batch(tx: Tx, batch: Batch) -> bool:
    """Insert a batch; False if another sealer took the number."""
    return await tx.one(_ADD_BATCH, asdict(batch)) is not None


async def put_in_batch(tx: Tx, entries: Sequence[Entry], seq: int) -> None:
    """Assign entries to a batch, by id: a selection by time could include an entry that committed after hashing."""
    await tx.exec_many(
        "UPDATE audit_entries SET batch = :batch, position = :position WHERE id = :id AND batch IS NULL",
        [{"id": entry.id, "batch": seq, "position": position} for position, entry in enumerate(entries, 1)],
    )


async def put_head(tx: Tx, new: Head, old: Head | None) -> bool:
    """Replace the head `old` by `new`; False if the head has changed since `old` was read."""
    values = asdict(new)
    if old is None:
        return await tx.one(_ADD_HEAD, values) is not None
    sql = """
        UPDATE audit_heads SET seq = :seq, hash = :hash, dropped = :dropped, broken = :broken, mac = :mac
        WHERE org_id = :org_id AND mac = :old_mac
    """
    return await tx.exec(sql, {**values, "old_mac": old.mac}) == 1


async def heads(tx: Tx, after: str, limit: int) -> list[Head]:
    sql = f"SELECT {HEAD} FROM audit_heads h WHERE h.org_id > :after ORDER BY h.org_id LIMIT :limit"
    return [Head(*row) for row in await tx.all(sql, {"after": after, "limit": limit})]


# Verifying ----------------------------------------------------------------------------------------------------------


async def next_organization(db: Database, after: str) -> str | None:
    """The next organization by id, including organizations without a log and logs of deleted organizations."""
    row = await db.one(
        """
        SELECT min(found.org_id) AS org_id FROM (
            SELECT min(org_id) AS org_id FROM audit_heads WHERE org_id > :after
            UNION ALL SELECT min(org_id) FROM audit_batches WHERE org_id > :after
            UNION ALL SELECT min(org_id) FROM audit_entries WHERE org_id > :after
            UNION ALL SELECT min(id) FROM organizations WHERE id > :after
        ) AS found
        """,
        {"after": after},
    )
    return row["org_id"] if row else None


async def organization_name(tx: Tx | Database, org_id: str) -> str | None:
    row = await tx.one("SELECT name FROM organizations WHERE id = :id", {"id": org_id})
    return row["name"] if row else None


async def batch(tx: Tx | Database, org_id: str, seq: int) -> Batch | None:
    sql = f"SELECT {BATCH} FROM audit_batches b WHERE b.org_id = :org_id AND b.seq = :seq"
    row = await tx.one(sql, {"org_id": org_id, "seq": seq})
    return Batch(*row) if row else None


async def last_batch(tx: Tx | Database, org_id: str, before: int = 2**63 - 1) -> Batch | None:
    sql = (
        f"SELECT {BATCH} FROM audit_batches b WHERE b.org_id = :org_id AND b.seq < :before ORDER BY b.seq DESC LIMIT 1"
    )
    row = await tx.one(sql, {"org_id": org_id, "before": before})
    return Batch(*row) if row else None


async def batches(tx: Tx, org_id: str, after: int, limit: int) -> list[Batch]:
    rows = await tx.all(
        f"SELECT {BATCH} FROM audit_batches b WHERE b.org_id = :org_id AND b.seq > :after ORDER BY b.seq LIMIT :limit",
        {"org_id": org_id, "after": after, "limit": limit},
    )
    return [Batch(*row) for row in rows]


async def in_batches(tx: Tx, org_id: str, first: int, last: int, limit: int) -> list[Entry]:
    """The entries of a range of batches, in chain order."""
    rows = await tx.all(
        f"""
        SELECT {ENTRY} FROM audit_entries e WHERE e.org_id = :org_id AND e.batch BETWEEN :first AND :last
        ORDER BY e.batch, e.position LIMIT :limit
        """,
        {"org_id": org_id, "first": first, "last": last, "limit": limit},
    )
    return [Entry(*row) for row in rows]


async def ids_in_batches(tx: Tx, org_id: str, first: int, last: int) -> list[tuple[int, str]]:
    """Batch and id of the entries of a range of batches, in chain order."""
    rows = await tx.all(
        """
        SELECT batch, id FROM audit_entries WHERE org_id = :org_id AND batch BETWEEN :first AND :last
        ORDER BY batch, position
        """,
        {"org_id": org_id, "first": first, "last": last},
    )
    return [(row["batch"], row["id"]) for row in rows]


async def stray_batch(tx: Tx, org_id: str, dropped: int, last: int) -> int | None:
    """The number of a batch that has an entry although the batch was dropped or never sealed."""
    row = await tx.one(
        """
        SELECT max(found.batch) AS batch FROM (
            SELECT max(batch) AS batch FROM audit_entries WHERE org_id = :org_id AND batch > :last
            UNION ALL SELECT min(batch) FROM audit_entries WHERE org_id = :org_id AND batch <= :dropped
        ) AS found
        """,
        {"org_id": org_id, "dropped": dropped, "last": last},
    )
    return row["batch"] if row else None


async def waiting(tx: Tx, org_id: str) -> tuple[int, int | None]:
    """The number of unsealed entries, and the time of the oldest."""
    row = await tx.one(
        "SELECT count(*) AS n, min(created_at) AS since FROM audit_entries WHERE org_id = :org_id AND batch IS NULL",
        {"org_id": org_id},
    )
    return (row["n"], row["since"]) if row else (0, None)


# Retention ----------------------------------------------------------------------------------------------------------

_FIRST_RETAINED = "(SELECT min(k.seq) FROM audit_batches k WHERE k.org_id = h.org_id AND k.seq > h.dropped)"


async def next_droppable(tx: Tx, sealed_before: int, after: str) -> str | None:
    """The next organization, by id, whose first retained batch was sealed before `sealed_before`."""
    row = await tx.one(
        f"""
        SELECT h.org_id FROM audit_heads h JOIN audit_batches b ON b.org_id = h.org_id AND b.seq = {_FIRST_RETAINED}
        WHERE h.org_id > :after AND b.sealed_at < :sealed_before ORDER BY h.org_id LIMIT 1
        """,
        {"after": after, "sealed_before": sealed_before},
    )
    return row["org_id"] if row else None


async def drop_entries(tx: Tx, org_id: str, through: int) -> None:
    await tx.exec(
        "DELETE FROM audit_entries WHERE org_id = :org_id AND batch <= :through", {"org_id": org_id, "through": through}
    )


async def mark_dropped(tx: Tx, org_id: str, seq: int, now: int) -> None:
    await tx.exec(
        "UPDATE audit_batches SET dropped_at = :now WHERE org_id = :org_id AND seq = :seq",
        {"org_id": org_id, "seq": seq, "now": now},
    )


# Reading ------------------------------------------------------------------------------------------------------------


async def older(tx: Tx, org_id: str, entry_filter: Filter, before: tuple[int, str], limit: int) -> list[ListedEntry]:
    """Entries before `before`, newest first."""
    where, values = _condition(entry_filter)
    rows = await tx.all(
        f"""
        {_LISTED} WHERE e.org_id = :org_id AND (e.created_at, e.id) < (:created_at, :id) {where}
        ORDER BY e.created_at DESC, e.id DESC LIMIT :limit
        """,
        {**values, "org_id": org_id, "created_at": before[0], "id": before[1], "limit": limit},
    )
    return [_listed(row) for row in rows]


async def newer(tx: Tx, org_id: str, entry_filter: Filter, after: tuple[int, str], limit: int) -> list[ListedEntry]:
    """Entries after `after`, oldest first."""
    where, values = _condition(entry_filter)
    rows = await tx.all(
        f"""
        {_LISTED} WHERE e.org_id = :org_id AND (e.created_at, e.id) > (:created_at, :id) {where}
        ORDER BY e.created_at, e.id LIMIT :limit
        """,
        {**values, "org_id": org_id, "created_at": after[0], "id": after[1], "limit": limit},
    )
    return [_listed(row) for row in rows]


async def count(tx: Tx, org_id: str, entry_filter: Filter, limit: int) -> int:
    """The number of matching entries, up to `limit`, so that a long log is not read completely."""
    where, values = _condition(entry_filter)
    row = await tx.one(
        f"""
        SELECT count(*) AS n FROM (
            SELECT 1 FROM audit_entries e WHERE e.org_id = :org_id {where} LIMIT :limit
        ) AS found
        """,
        {**values, "org_id": org_id, "limit": limit},
    )
    return int(row["n"]) if row else 0


async def in_chain_order(
    tx: Tx, org_id: str, entry_filter: Filter, after: tuple[int, int], limit: int
) -> list[ListedEntry]:
    """Sealed entries after a position, in chain order. Unsealed entries have no batch and never match."""
    where, values = _condition(entry_filter)
    rows = await tx.all(
        f"""
        {_LISTED} WHERE e.org_id = :org_id AND (e.batch, e.position) > (:batch, :position) {where}
        ORDER BY e.batch, e.position LIMIT :limit
        """,
        {**values, "org_id": org_id, "batch": after[0], "position": after[1], "limit": limit},
    )
    return [_listed(row) for row in rows]


async def chain_end(tx: Tx, org_id: str) -> tuple[int, int] | None:
    """Batch and position of the last sealed entry."""
    row = await tx.one(
        """
        SELECT batch, position FROM audit_entries WHERE org_id = :org_id AND batch IS NOT NULL
        ORDER BY batch DESC, position DESC LIMIT 1
        """,
        {"org_id": org_id},
    )
    return (row["batch"], row["position"] or 0) if row else None


# Some engines lower-case only ASCII letters, so a word is also searched as written.
_TERMS = {
    # The app by its client id, which is the first key in the stored JSON (`chain.canonical_json`).
    "app": "lower(e.oauth) LIKE :{name} ESCAPE '!'",
    "author": "(lower(e.author_name) = :{name} OR e.author_id = :{name})",
    "ip": "lower(e.ip) = :{name}",
    "type": "e.type = :{name}",
    "": "(lower(e.message) LIKE :{name} ESCAPE '!' OR e.message LIKE :{name}_as_given ESCAPE '!')",
}


def _condition(entry_filter: Filter) -> tuple[str, dict[str, str]]:
    """The SQL condition of a filter on entries `e`, with its values."""
    values: dict[str, str] = {}
    groups: dict[str, list[str]] = {}
    # Sorted, so that there are at most a few hundred distinct statements.
    for number, term in enumerate(sorted(entry_filter.terms, key=lambda term: term.key)):
        name = f"term{number}"
        if term.key == "app":
            values[name] = beginning(f'{{"clientid":{json.dumps(term.value.lower(), ensure_ascii=False)}')
        elif term.key:
            values[name] = term.value.lower()
        else:
            values[name], values[f"{name}_as_given"] = containing(term.value.lower()), containing(term.value)
        groups.setdefault(term.key or name, []).append(_TERMS[term.key].format(name=name))
    return "".join(f" AND ({' OR '.join(group)})" for group in groups.values()), values


def _listed(row: Row) -> ListedEntry:
    *values, author_gone, token_gone = row
    return ListedEntry(Entry(*values), bool(author_gone), bool(token_gone))
