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
_TOKENS_WITHOUT_TEXTS = "array_to_tsvector(array_remove(string_to_array(access || ' ' || names, ' '), ''))"
_ACCESS = "string_to_array(access, ' ')"
_PUBLIC = f"{_TOKENS} @@ CAST(:words AS tsquery)"
_PRIVATE = f"{_TOKENS} @@ CAST(:private_words AS tsquery) AND {_ACCESS} && string_to_array(:access, ' ')"
# Matches that are read and sorted. With more of them, enough are usually among the newest documents.
MAX_SORTED = 3_000
NEWEST_CHECKED = 400
# For each result: so many of the newest documents are checked before the index is read, if only their names matter.
# They have enough matches of the most common words, for which the index takes longest.
CHECKED_FIRST = 8


class PostgresTextIndex:
    matching = f"""(
        SELECT * FROM search_documents WHERE {_PUBLIC} UNION ALL SELECT * FROM search_documents WHERE {_PRIVATE}
    ) d"""

    def parameters(self, query: TextQuery) -> Params:
        return {"private_words": "", "access": "", **_parameters(query)}

    async def prepare(self, tx: Tx) -> None:
        # For the rest of the transaction, which then reads documents and their targets by key, one by one.
        settings = (f"set_config('enable_{each}', 'off', true)" for each in ("seqscan", "hashjoin", "mergejoin"))
        await tx.one(f"SELECT {', '.join(settings)}")

    async def is_selective(self, tx: Tx, query: TextQuery, limit: int) -> bool:
        found = " UNION ALL ".join(
            f"(SELECT 1 FROM search_documents WHERE {condition} LIMIT :limit)" for condition in _conditions(query)
        )
        row = await tx.one(f"SELECT count(*) AS n FROM ({found}) found", {**_parameters(query), "limit": limit + 1})
        return row is not None and row["n"] <= limit

    async def newest(self, tx: Tx, query: TextQuery, before: int | None, limit: int) -> list[tuple[int, str]]:
        """The newest of all matches, or of MAX_SORTED matches if these are rare among the newest documents."""
        if query.access is not None and _has_prefixes(query) and not _has_texts(query):
            first = await self._among_newest(tx, query, before, limit, CHECKED_FIRST * limit)
            if len(first) == limit:
                return first
        found, are_all = await self._sorted(tx, query, before, limit)
        if not are_all:
            among_newest = await self._among_newest(tx, query, before, limit, NEWEST_CHECKED)
            if len(among_newest) == limit:
                return among_newest
        return found

    async def _sorted(
        self, tx: Tx, query: TextQuery, before: int | None, limit: int
    ) -> tuple[list[tuple[int, str]], bool]:
        """The newest of MAX_SORTED public and as many private matches, and whether these are all."""
        found = " UNION ALL ".join(
            f"""(
            SELECT id, target, count(*) OVER () AS n FROM (
                SELECT id, target FROM search_documents
                WHERE {condition} {"" if before is None else "AND id + 0 < :before"} LIMIT {MAX_SORTED}
            ) matches ORDER BY id DESC LIMIT :limit
            )"""
            for condition in _conditions(query)
        )
        rows = await tx.all(found, {**_parameters(query), "before": before, "limit": limit})
        newest = sorted(((row["id"], row["target"]) for row in rows), reverse=True)[:limit]
        return newest, all(row["n"] < MAX_SORTED for row in rows)

    async def _among_newest(
        self, tx: Tx, query: TextQuery, before: int | None, limit: int, checked: int
    ) -> list[tuple[int, str]]:
        """The newest matches among the newest documents. With `section = :section`, PostgreSQL might read those of
        all sections, in the order of the primary key.
        """
        condition = " OR ".join(f"({each})" for each in _conditions(query))
        if not _has_texts(query):
            condition = condition.replace(_TOKENS, _TOKENS_WITHOUT_TEXTS)
        rows = await tx.all(
            f"""
            SELECT id, target FROM (
                SELECT * FROM search_documents
                WHERE section >= :section AND section <= :section {"" if before is None else "AND id < :before"}
                ORDER BY section DESC, id DESC LIMIT :checked
            ) newest WHERE {condition} ORDER BY id DESC LIMIT :limit
            """,
            {**_parameters(query), "section": query.section, "before": before, "limit": limit, "checked": checked},
        )
        return [(row["id"], row["target"]) for row in rows]

    async def parts(self, _tx: Tx) -> int:
        """GIN has one part; the server itself adds what was written recently."""
        return 1

    async def merge_parts(self, _tx: Tx) -> None: ...


def _has_prefixes(query: TextQuery) -> bool:
    return any(term.is_prefix for group in query.all_of for term in group)


def _has_texts(query: TextQuery) -> bool:
    """Whether a token of texts is searched (search/words.py)."""
    return any(term.token.startswith((".", "#")) for group in query.all_of for term in group)


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
