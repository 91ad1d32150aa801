"""SQL as both engines take it: written once with `:name`, compiled once per text for PostgreSQL.

The shared subset: text, blob and 64-bit integer columns; ON CONFLICT; RETURNING; no engine's own functions or
casts (`CAST(:x AS bigint)`, never `::`). SQLite takes the text as it is. A comment that begins with `pg`, as in
`SELECT ... /*pg FOR UPDATE */`, is read by PostgreSQL: SQLite has one writer and needs no locks of rows.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

Value = str | bytes | int | None
Params = Mapping[str, Value]
Kind = Literal["text", "bytea", "bigint"]

NO_PARAMS: Params = {}

# A literal, a quoted name or a comment is skipped whole, so that a colon inside one is no parameter.
_POSTGRES_ONLY = re.compile(r"/\*pg (.*?)\*/", re.DOTALL)
_TOKEN = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|--[^\n]*|:([a-z][a-z0-9_]*)")


@cache
def positional(sql: str) -> tuple[str, tuple[str, ...]]:
    """The text with `$n` in place of `:name`, and the names in the order of their numbers."""
    return _numbered(sql, {})


@dataclass(frozen=True, eq=False)
class Each:
    """A statement that a unit runs for many rows. On PostgreSQL it is one statement for all of them.

    `columns` differ from row to row and are written `:name` like everything else. Around a SELECT PostgreSQL loops in
    the order of the rows. A change has to say where the rows come from, `/*pg FROM batch */` or `/*pg , batch */`; no
    two of its rows change the same thing, and it happens in no order.
    """

    sql: str
    columns: Mapping[str, Kind]


@cache
def together(op: Each) -> tuple[str, tuple[str, ...]]:
    """One statement for all rows. Its first parameters are the columns, as arrays; then those named."""
    values = {name: f"batch.each_{name}" for name in op.columns}
    sql, names = _numbered(op.sql.strip(), values)
    arrays = ", ".join(f"${number}::{kind}[]" for number, kind in enumerate(op.columns.values(), 1))
    named = ", ".join(f"each_{name}" for name in op.columns)
    if sql.startswith("SELECT"):
        sql = f"SELECT found.* FROM batch CROSS JOIN LATERAL ({sql}) found"
    return f"WITH batch AS (SELECT * FROM unnest({arrays}) AS given({named})) {sql}", names


def _numbered(sql: str, values: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
    """Names that have a value stand for that; the others get the numbers behind those."""
    numbers: dict[str, int] = {}

    def number(match: re.Match[str]) -> str:
        name = match.group(1)
        if name is None:
            return match.group(0)
        return values.get(name) or f"${numbers.setdefault(name, len(values) + len(numbers) + 1)}"

    return _TOKEN.sub(number, _POSTGRES_ONLY.sub(r"\1", sql)), tuple(numbers)


def as_params(record: Any) -> dict[str, Value]:
    """The fields of a dataclass by name, as they are: `dataclasses.asdict` copies every one of them deeply."""
    return {name: getattr(record, name) for name in record.__dataclass_fields__}


def containing(part: str) -> str:
    """A LIKE pattern, escaped with `!`, for texts that contain `part`."""
    return f"%{_escaped(part)}%"


def beginning(part: str) -> str:
    """The same for texts that begin with `part`."""
    return f"{_escaped(part)}%"


def _escaped(part: str) -> str:
    for special in "!%_":
        part = part.replace(special, "!" + special)
    return part


@cache
def require_read(sql: str) -> None:
    """A look-up outside a unit may be repeated after a lost connection, so it must change nothing."""
    if not sql.lstrip().upper().startswith("SELECT"):
        raise ValueError(f"not a look-up: {sql.strip()[:40]}")
