"""The text index on SQLite: an FTS5 table, which triggers on `search_documents` update."""

from hubgate.server.storage.database import Tx
from hubgate.server.storage.text_query import AllOf, AnyOf, TextQuery


class SqliteTextIndex:
    # CROSS JOIN: the index is read first.
    matching = """(
        SELECT d.* FROM search_words CROSS JOIN search_documents d ON d.id = search_words.rowid
        WHERE search_words MATCH :words
    ) d"""

    def expression(self, query: TextQuery) -> str:
        excluded = "".join(f" NOT ({_all_of(groups, query.mark)})" for groups in query.none_of)
        return f"({_all_of(query.all_of, query.mark)}){excluded}"

    async def is_selective(self, tx: Tx, query: TextQuery, limit: int) -> bool:
        rows = await tx.all(
            "SELECT rowid FROM search_words WHERE search_words MATCH :words LIMIT :limit",
            {"words": self.expression(query), "limit": limit + 1},
        )
        return len(rows) <= limit

    async def newest(self, tx: Tx, query: TextQuery, before: int | None, limit: int) -> list[tuple[int, str]]:
        """FTS5 returns rows in the order of their ids, so a common word costs no more than a rare one."""
        rows = await tx.all(
            f"""
            SELECT found.id, d.target FROM (
                SELECT rowid AS id FROM search_words
                WHERE search_words MATCH :words {"" if before is None else "AND rowid < :before"}
                ORDER BY rowid DESC LIMIT :limit
            ) found JOIN search_documents d ON d.id = found.id ORDER BY found.id DESC
            """,
            {"words": self.expression(query), "before": before, "limit": limit},
        )
        return [(row["id"], row["target"]) for row in rows]


def _all_of(groups: AllOf, mark: str) -> str:
    return " AND ".join(_any_of(group, mark) for group in groups)


def _any_of(group: AnyOf, mark: str) -> str:
    quoted = (f'"{mark}{term.token}"{" *" if term.is_prefix else ""}' for term in group)
    return f"({' OR '.join(quoted)})"
