"""The text index on SQLite: an FTS5 table, which triggers on `search_documents` update."""

from hubgate.server.storage.database import Tx
from hubgate.server.storage.sqltext import Params
from hubgate.server.storage.text_query import CHECKED_FOR_EACH, AllOf, AnyOf, Term, TextQuery

# Pages of the index that are written at once, in a few milliseconds.
PAGES_PER_STEP = 200


class SqliteTextIndex:
    # CROSS JOIN: the index is read first.
    matching = """(
        SELECT d.* FROM search_words CROSS JOIN search_documents d ON d.id = search_words.rowid
        WHERE search_words MATCH :words
    ) d"""

    def parameters(self, query: TextQuery) -> Params:
        groups = query.all_of
        if query.access is not None:
            groups = (*groups, tuple(map(Term, (query.access.public, *query.access.private))))
        excluded = "".join(f" NOT ({_all_of(each, query.mark)})" for each in query.none_of)
        return {"words": f"({_all_of(groups, query.mark)}){excluded}"}

    async def prepare(self, _tx: Tx, *, only_searches: bool) -> None: ...

    async def is_selective(self, tx: Tx, query: TextQuery, limit: int) -> bool:
        rows = await tx.all(
            "SELECT rowid FROM search_words WHERE search_words MATCH :words LIMIT :limit",
            {**self.parameters(query), "limit": limit + 1},
        )
        return len(rows) <= limit

    async def newest(self, tx: Tx, query: TextQuery, before: int | None, limit: int) -> list[tuple[int, str]]:
        if query.has_many_owners:
            checked = CHECKED_FOR_EACH * limit
            rows = await self._newest(tx, query.with_few_tokens, before, checked)
            visible = query.visible_among(rows)
            if len(visible) >= limit or len(rows) < checked:
                return visible[:limit]
        return [row[:2] for row in await self._newest(tx, query, before, limit)]

    async def _newest(self, tx: Tx, query: TextQuery, before: int | None, limit: int) -> list[tuple[int, str, str]]:
        """With the access. FTS5 returns rows in the order of their ids, so a common word costs no more than a rare
        one.
        """
        rows = await tx.all(
            f"""
            SELECT found.id, d.target, d.access FROM (
                SELECT rowid AS id FROM search_words
                WHERE search_words MATCH :words {"" if before is None else "AND rowid < :before"}
                ORDER BY rowid DESC LIMIT :limit
            ) found JOIN search_documents d ON d.id = found.id ORDER BY found.id DESC
            """,
            {**self.parameters(query), "before": before, "limit": limit},
        )
        return [(row["id"], row["target"], row["access"]) for row in rows]

    async def parts(self, tx: Tx) -> int:
        """Every transaction adds a part to the index, and each token of a query is looked up in every part. FTS5 merges
        parts during writes too, but leaves up to twenty.
        """
        row = await tx.one("SELECT count(DISTINCT segid) AS n FROM search_words_idx")
        return int(row["n"]) if row else 0

    async def merge_parts(self, tx: Tx) -> None:
        # A negative number merges all parts, not only those of similar size.
        await tx.exec(
            "INSERT INTO search_words (search_words, rank) VALUES ('merge', :pages)", {"pages": -PAGES_PER_STEP}
        )


def _all_of(groups: AllOf, mark: str) -> str:
    return " AND ".join(_any_of(group, mark) for group in groups)


def _any_of(group: AnyOf, mark: str) -> str:
    quoted = (f'"{mark}{term.token}"{" *" if term.is_prefix else ""}' for term in group)
    return f"({' OR '.join(quoted)})"
