"""The text index on PostgreSQL: a GIN index on the tokens of `search_documents` as a tsvector, and on who may see them.

GIN returns documents in no useful order, and the planner cannot estimate how many match. So the statements here leave
it no choice: matches are read through the index up to a limit, or the newest documents are checked one by one.

Public and private documents are found separately: in one expression, each of hundreds of owners would be evaluated for
every match, but the operator for arrays reads only the documents of these owners.
"""

from hubgate.server.storage.database import Tx
from hubgate.server.storage.sqltext import Params
from hubgate.server.storage.text_query import AllOf, AnyOf, Term, TextQuery

# The expressions of the index.
_TOKENS = "array_to_tsvector(array_remove(string_to_array(access || ' ' || names || ' ' || texts, ' '), ''))"
_ACCESS = "string_to_array(access, ' ')"
_PUBLIC = f"{_TOKENS} @@ CAST(:words AS tsquery)"
_PRIVATE = f"{_TOKENS} @@ CAST(:private_words AS tsquery) AND {_ACCESS} && string_to_array(:access, ' ')"
# Matches that are read and sorted. With more of them, enough are usually among the newest documents.
MAX_SORTED = 3_000
NEWEST_CHECKED = 400


class PostgresTextIndex:
    matching = f"""(
        SELECT * FROM search_documents WHERE {_PUBLIC} UNION ALL SELECT * FROM search_documents WHERE {_PRIVATE}
    ) d"""

    def parameters(self, query: TextQuery) -> Params:
        access = query.access
        return {
            "words": _expression(query, access.public if access else None),
            "private_words": _expression(query, None),
            "access": " ".join(f"{query.mark}{token}" for token in access.private) if access else "",
        }

    async def is_selective(self, tx: Tx, query: TextQuery, limit: int) -> bool:
        count = 0
        for condition, params in self._conditions(query):
            count += await self._count(tx, condition, params, limit + 1 - count)
            if count > limit:
                return False
        return True

    async def newest(self, tx: Tx, query: TextQuery, before: int | None, limit: int) -> list[tuple[int, str]]:
        """The newest of all matches, or of MAX_SORTED matches if these are rare among the newest documents."""
        found: set[tuple[int, str]] = set()
        for condition, params in self._conditions(query):
            found |= set(await self._newest_of(tx, query.section, condition, params, before, limit))
        return sorted(found, reverse=True)[:limit]

    def _conditions(self, query: TextQuery) -> list[tuple[str, Params]]:
        values = self.parameters(query)
        public = (_PUBLIC, {"words": values["words"]})
        if query.access is None or not query.access.private:
            return [public]
        return [public, (_PRIVATE, {name: values[name] for name in ("private_words", "access")})]

    async def _count(self, tx: Tx, condition: str, params: Params, limit: int) -> int:
        await _use_index(tx)
        row = await tx.one(
            f"SELECT count(*) AS n FROM (SELECT 1 FROM search_documents WHERE {condition} LIMIT :limit) found",
            {**params, "limit": limit},
        )
        return int(row["n"]) if row else 0

    async def _newest_of(
        self, tx: Tx, section: str, condition: str, params: Params, before: int | None, limit: int
    ) -> list[tuple[int, str]]:
        await _use_index(tx)
        rows = await tx.all(
            f"""
            SELECT id, target, count(*) OVER () AS n FROM (
                SELECT id, target FROM search_documents
                WHERE {condition} {"" if before is None else "AND id + 0 < :before"} LIMIT {MAX_SORTED}
            ) found ORDER BY id DESC LIMIT :limit
            """,
            {**params, "before": before, "limit": limit},
        )
        if rows and rows[0]["n"] == MAX_SORTED:
            among_newest = await self._among_newest(tx, section, condition, params, before, limit)
            if len(among_newest) == limit:
                return among_newest
        return [(row["id"], row["target"]) for row in rows]

    async def _among_newest(
        self, tx: Tx, section: str, condition: str, params: Params, before: int | None, limit: int
    ) -> list[tuple[int, str]]:
        rows = await tx.all(
            f"""
            SELECT id, target FROM (
                SELECT * FROM search_documents
                WHERE section = :section {"" if before is None else "AND id < :before"}
                ORDER BY section DESC, id DESC LIMIT {NEWEST_CHECKED}
            ) newest WHERE {condition} ORDER BY id DESC LIMIT :limit
            """,
            {**params, "section": section, "before": before, "limit": limit},
        )
        return [(row["id"], row["target"]) for row in rows]

    async def parts(self, _tx: Tx) -> int:
        """GIN has one part; the server itself adds what was written recently."""
        return 1

    async def merge_parts(self, _tx: Tx) -> None: ...


async def _use_index(tx: Tx) -> None:
    # For the rest of the transaction, which then reads documents and their targets by key.
    await tx.exec("SET LOCAL enable_seqscan = off")


def _expression(query: TextQuery, token: str | None) -> str:
    """The query, and a token that every document must have."""
    groups = query.all_of if token is None else (*query.all_of, (Term(token),))
    excluded = "".join(f" & !({_all_of(each, query.mark)})" for each in query.none_of)
    return f"({_all_of(groups, query.mark)}){excluded}"


def _all_of(groups: AllOf, mark: str) -> str:
    return " & ".join(_any_of(group, mark) for group in groups)


def _any_of(group: AnyOf, mark: str) -> str:
    quoted = (f"'{mark}{term.token}'{':*' if term.is_prefix else ''}" for term in group)
    return f"({' | '.join(quoted)})"
