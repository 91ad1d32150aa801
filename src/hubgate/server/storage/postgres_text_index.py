"""The text index on PostgreSQL: a GIN index on the tokens of `search_documents` as a tsvector, and on who may see them.

GIN reads all matches of a word, in no useful order, which takes long for common words; and the planner cannot estimate
how many match. So the statements here leave it no choice: the newest documents are checked one by one first, and the
index is read only if few of them match, up to a limit. Conditions on a count keep a part of a statement from running.

Public and private documents are found separately: in one expression, each of hundreds of owners would be evaluated for
every match, but the operator for arrays reads only the documents of these owners.
"""

from hubgate.server.storage.database import Tx
from hubgate.server.storage.sqltext import Params
from hubgate.server.storage.text_query import CHECKED_FOR_EACH, AllOf, AnyOf, Term, TextQuery

_PUBLIC = "search_words @@ CAST(:words AS tsquery)"
# The subquery is run once, not for every document.
_PRIVATE = """search_words @@ CAST(:private_words AS tsquery)
    AND string_to_array(access, ' ') && (SELECT string_to_array(:access, ' '))"""
# Matches that are read and sorted. With more of them, enough are usually among the newest documents.
MAX_SORTED = 3_000
# Documents that are checked before the index is read, and if so many match that the index would take longer.
CHECKED_FIRST = 200
MAX_CHECKED = 4_000


class PostgresTextIndex:
    matching = f"""(
        SELECT target FROM search_documents WHERE {_PUBLIC}
        UNION ALL SELECT target FROM search_documents WHERE {_PRIVATE}
    ) d"""

    def parameters(self, query: TextQuery) -> Params:
        return {"private_words": "", "access": "", **_parameters(query)}

    async def prepare(self, tx: Tx, *, only_searches: bool) -> None:
        # For the rest of the transaction, which then reads documents and their targets by key, one by one.
        settings = {f"enable_{each}": "off" for each in ("seqscan", "hashjoin", "mergejoin")}
        if only_searches:
            # To plan such a statement takes longer than to run it.
            settings["plan_cache_mode"] = "force_generic_plan"
        changes = (f"set_config('{name}', '{value}', true)" for name, value in settings.items())
        await tx.one(f"SELECT {', '.join(changes)}")

    async def is_selective(self, tx: Tx, query: TextQuery, limit: int) -> bool:
        found = " UNION ALL ".join(
            f"(SELECT 1 FROM search_documents WHERE {condition} LIMIT :limit)" for condition in _conditions(query)
        )
        row = await tx.one(f"SELECT count(*) AS n FROM ({found}) found", {**_parameters(query), "limit": limit + 1})
        return row is not None and row["n"] <= limit

    async def newest(self, tx: Tx, query: TextQuery, before: int | None, limit: int) -> list[tuple[int, str]]:
        """The newest of all matches, or of MAX_SORTED matches if these are rare among the newest documents."""
        # Few documents have a whole name.
        checked = 0 if _is_whole_name(query) else CHECKED_FIRST
        common = min(limit, max(3, limit // 8))
        newest, few = await self._newest_or_few(tx, query, before, limit, checked, common)
        if common <= len(newest) < limit:
            newest = await self._among_newest(tx, query, before, limit)
        elif len(newest) < limit:
            visible = sorted(query.visible_among(few), reverse=True)
            if len(visible) >= limit or len(few) < CHECKED_FOR_EACH * limit:
                return visible[:limit]
        return newest if len(newest) == limit else await self._sorted(tx, query, before, limit)

    async def _newest_or_few(
        self, tx: Tx, query: TextQuery, before: int | None, limit: int, checked: int, common: int
    ) -> tuple[list[tuple[int, str]], list[tuple[int, str, str]]]:
        """The newest matches among the newest documents; if less than `common`, also the newest of MAX_SORTED matches,
        also those that the caller may not see, with their access.
        """
        rows = await tx.all(
            f"""
            WITH newest AS MATERIALIZED ({_newest(query, before)})
            SELECT id, target, NULL AS access FROM newest
            UNION ALL (
                SELECT id, target, access FROM (
                    SELECT id, target, access FROM search_documents
                    WHERE search_words @@ CAST(:few_words AS tsquery) AND (SELECT count(*) FROM newest) < :common
                    {_before(before)} LIMIT {MAX_SORTED}
                ) matches ORDER BY id DESC LIMIT :few
            )
            """,
            {
                **_parameters(query),
                "few_words": _expression(query.with_few_tokens, None),
                "section": query.section,
                "before": before,
                "limit": limit,
                "few": CHECKED_FOR_EACH * limit,
                "checked": checked,
                "common": common,
            },
        )
        newest = [(row["id"], row["target"]) for row in rows if row["access"] is None]
        return newest, [(row["id"], row["target"], row["access"]) for row in rows if row["access"] is not None]

    async def _among_newest(self, tx: Tx, query: TextQuery, before: int | None, limit: int) -> list[tuple[int, str]]:
        """The newest matches among the MAX_CHECKED newest documents."""
        params = {"section": query.section, "before": before, "limit": limit, "checked": MAX_CHECKED}
        rows = await tx.all(_newest(query, before), {**_parameters(query), **params})
        return [(row["id"], row["target"]) for row in rows]

    async def _sorted(self, tx: Tx, query: TextQuery, before: int | None, limit: int) -> list[tuple[int, str]]:
        """The newest of MAX_SORTED public and as many private matches."""
        found = " UNION ALL ".join(
            f"""(
            SELECT id, target FROM (
                SELECT id, target FROM search_documents
                WHERE {condition} {_before(before)} LIMIT {MAX_SORTED}
            ) matches ORDER BY id DESC LIMIT :limit
            )"""
            for condition in _conditions(query)
        )
        rows = await tx.all(found, {**_parameters(query), "before": before, "limit": limit})
        return sorted(((row["id"], row["target"]) for row in rows), reverse=True)[:limit]

    async def parts(self, _tx: Tx) -> int:
        """GIN has one part; the server itself adds what was written recently."""
        return 1

    async def merge_parts(self, _tx: Tx) -> None: ...


def _is_whole_name(query: TextQuery) -> bool:
    """Whether a whole name is searched, which few documents have (search/words.py)."""
    return any(term.token.startswith("=") for group in query.all_of for term in group)


def _newest(query: TextQuery, before: int | None) -> str:
    """The newest matches among `:checked` documents. With `section = :section`, PostgreSQL might read those of all
    sections, in the order of the primary key. Both orders are the same, so that it stops at the limit.
    """
    return f"""
        SELECT id, target FROM (
            SELECT * FROM search_documents
            WHERE section >= :section AND section <= :section {"" if before is None else "AND id < :before"}
            ORDER BY section DESC, id DESC LIMIT :checked
        ) newest WHERE {" OR ".join(f"({each})" for each in _conditions(query))}
        ORDER BY section DESC, id DESC LIMIT :limit
    """


def _before(before: int | None) -> str:
    """The addition keeps PostgreSQL from reading the primary key."""
    return "" if before is None else "AND id + 0 < :before"


def _conditions(query: TextQuery) -> list[str]:
    return [_PUBLIC, _PRIVATE] if query.access is not None and query.access.private else [_PUBLIC]


def _parameters(query: TextQuery) -> Params:
    """The parameters of the conditions."""
    if query.access is None or not query.access.private:
        return {"words": _expression(query, query.access.public if query.access else None)}
    return {
        "words": _expression(query, query.access.public),
        "private_words": _expression(query, None),
        "access": " ".join(f"{query.mark}{token}" for token in query.access.private),
    }


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
