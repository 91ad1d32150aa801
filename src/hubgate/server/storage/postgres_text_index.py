"""The text index on PostgreSQL: a GIN index on the tokens of `search_documents` as a tsvector.

GIN returns documents in no useful order, and the planner cannot estimate how many match. So the statements here leave
it no choice: matches are read through the index up to a limit, or the newest documents are checked one by one.
"""

from hubgate.server.storage.database import Tx
from hubgate.server.storage.text_query import AllOf, AnyOf, TextQuery

# The expression of the index, with its columns.
_TOKENS = "array_to_tsvector(array_remove(string_to_array(access || ' ' || names || ' ' || texts, ' '), ''))"
# Matches that are read and sorted. With more of them, enough are usually among the newest documents.
MAX_SORTED = 3_000
NEWEST_CHECKED = 400


class PostgresTextIndex:
    matching = f"(SELECT * FROM search_documents WHERE {_TOKENS} @@ CAST(:words AS tsquery)) d"

    def expression(self, query: TextQuery) -> str:
        excluded = "".join(f" & !({_all_of(groups, query.mark)})" for groups in query.none_of)
        return f"({_all_of(query.all_of, query.mark)}){excluded}"

    async def is_selective(self, tx: Tx, query: TextQuery, limit: int) -> bool:
        return len(await self._some(tx, query, None, limit + 1)) <= limit

    async def newest(self, tx: Tx, query: TextQuery, before: int | None, limit: int) -> list[tuple[int, str]]:
        """The newest of all matches, or of MAX_SORTED matches if these are rare among the newest documents."""
        found = await self._some(tx, query, before, MAX_SORTED)
        if len(found) == MAX_SORTED:
            among_newest = await self._among_newest(tx, query, before, limit)
            if len(among_newest) == limit:
                return among_newest
        return sorted(found, reverse=True)[:limit]

    async def _some(self, tx: Tx, query: TextQuery, before: int | None, limit: int) -> list[tuple[int, str]]:
        # For the rest of the transaction, which then reads documents and their targets by key.
        await tx.exec("SET LOCAL enable_seqscan = off")
        rows = await tx.all(
            f"""
            SELECT id, target FROM search_documents
            WHERE {_TOKENS} @@ CAST(:words AS tsquery) {"" if before is None else "AND id + 0 < :before"} LIMIT :limit
            """,
            {"words": self.expression(query), "before": before, "limit": limit},
        )
        return [(row["id"], row["target"]) for row in rows]

    async def _among_newest(self, tx: Tx, query: TextQuery, before: int | None, limit: int) -> list[tuple[int, str]]:
        rows = await tx.all(
            f"""
            SELECT id, target FROM (
                SELECT * FROM search_documents
                WHERE section = :section {"" if before is None else "AND id < :before"}
                ORDER BY section DESC, id DESC LIMIT {NEWEST_CHECKED}
            ) newest WHERE {_TOKENS} @@ CAST(:words AS tsquery) ORDER BY id DESC LIMIT :limit
            """,
            {"words": self.expression(query), "section": query.section, "before": before, "limit": limit},
        )
        return [(row["id"], row["target"]) for row in rows]


def _all_of(groups: AllOf, mark: str) -> str:
    return " & ".join(_any_of(group, mark) for group in groups)


def _any_of(group: AnyOf, mark: str) -> str:
    quoted = (f"'{mark}{term.token}'{':*' if term.is_prefix else ''}" for term in group)
    return f"({' | '.join(quoted)})"
