"""SQL for both engines: written with `:name` parameters, and compiled once per text for PostgreSQL.

The shared subset: text, blob and 64-bit integer columns; ON CONFLICT; RETURNING; no engine-specific functions or casts
(`CAST(:x AS bigint)`, never `::`). SQLite runs the text as it is. A comment that begins with `pg`, as in
`SELECT ... /*pg FOR UPDATE */`, is executed by PostgreSQL; SQLite has one writer and needs no row locks.
"""

import re
from collections.abc import Mapping
from functools import cache
from typing import Literal

from msgspec import Struct

Value = str | bytes | int | None
Params = Mapping[str, Value]
# A statement with its parameters.
Statement = tuple[str, Params]
Kind = Literal["text", "bytea", "bigint"]

NO_PARAMS: Params = {}

_POSTGRES_ONLY = re.compile(r"/\*pg (.*?)\*/", re.DOTALL)
# Literals, quoted names and comments are skipped, so that a colon in them is not read as a parameter.
_TOKEN = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|--[^\n]*|:([a-z][a-z0-9_]*)")


@cache
def positional(sql: str) -> tuple[str, tuple[str, ...]]:
    """The SQL with `$n` in place of `:name`, and the parameter names in the order of their numbers."""
    return _numbered(sql, {})


class RowStatement(Struct, frozen=True, eq=False):
    """A statement that a unit runs for many rows. PostgreSQL executes all rows in one statement.

    `columns` differ from row to row and are written `:name`, like other parameters. For a SELECT, PostgreSQL processes
    the rows in order. A statement that changes data must name the source of the rows, with `/*pg FROM batch */` or
    `/*pg , batch */`; no two rows may change the same table row, and their order is undefined.

    SQLite executes the statement once per row. A SELECT of one column may say `FROM /*rows*/ table`: SQLite then
    executes it once and joins the rows there, which takes a third of the time.
    """

    sql: str
    columns: Mapping[str, Kind]

    @property
    def returns_rows(self) -> bool:
        return _returns_rows(self.sql)


def columns_of(*, text: str = "", bigint: str = "", bytea: str = "") -> dict[str, Kind]:
    """The columns of a `RowStatement`, given as names of each kind separated by spaces."""
    given: tuple[tuple[Kind, str], ...] = (("text", text), ("bigint", bigint), ("bytea", bytea))
    return {name: kind for kind, names in given for name in names.split()}


@cache
def as_sqlite_join(op: RowStatement) -> str | None:
    """The SELECT that reads all rows on SQLite, from `:rows`, a list in JSON; None without `/*rows*/`."""
    if "/*rows*/" not in op.sql:
        return None
    (column,) = op.columns
    source = op.sql.replace("/*rows*/", "json_each(:rows) given CROSS JOIN")
    return _TOKEN.sub(lambda match: "given.value" if match.group(1) == column else match.group(0), source)


@cache
def _returns_rows(sql: str) -> bool:
    return sql.lstrip().startswith("SELECT") or "RETURNING" in sql


@cache
def as_single_statement(op: RowStatement) -> tuple[str, tuple[str, ...]]:
    """The SQL that executes all rows, and its parameter names. The first parameters are the columns, as arrays."""
    values = {name: f"batch.each_{name}" for name in op.columns}
    sql, names = _numbered(op.sql.strip(), values)
    arrays = ", ".join(f"${number}::{kind}[]" for number, kind in enumerate(op.columns.values(), 1))
    named = ", ".join(f"each_{name}" for name in op.columns)
    if sql.startswith("SELECT"):
        # OFFSET keeps the planner from joining all rows at once: without statistics it would read whole tables.
        sql = f"SELECT found.* FROM batch CROSS JOIN LATERAL (SELECT * FROM ({sql}) each OFFSET 0) found"
    return f"WITH batch AS (SELECT * FROM unnest({arrays}) AS given({named})) {sql}", names


@cache
def as_one_statement(statements: tuple[str, ...]) -> tuple[str, tuple[tuple[int, str], ...]]:
    """The SQL that executes statements which change data, and for each parameter the position of its statement and its
    name.
    """
    texts: list[str] = []
    parameters: list[tuple[int, str]] = []
    for position, statement in enumerate(statements):
        text, names = _numbered(statement, {}, first=len(parameters) + 1)
        texts.append(text)
        parameters += [(position, name) for name in names]
    *before, last = texts
    parts = ", ".join(f"part_{number} AS ({text})" for number, text in enumerate(before, 1))
    return (f"WITH {parts} {last}" if parts else last), tuple(parameters)


def _numbered(sql: str, values: Mapping[str, str], first: int = 1) -> tuple[str, tuple[str, ...]]:
    """Replace each `:name` by its entry in `values`, or else by the next number after `first` and those of `values`."""
    numbers: dict[str, int] = {}

    def number(match: re.Match[str]) -> str:
        name = match.group(1)
        if name is None:
            return match.group(0)
        return values.get(name) or f"${numbers.setdefault(name, len(values) + len(numbers) + first)}"

    return _TOKEN.sub(number, with_postgres_parts(sql)), tuple(numbers)


def with_postgres_parts(sql: str) -> str:
    """The SQL with the contents of comments that begin with `pg`."""
    return _POSTGRES_ONLY.sub(r"\1", sql)


def insert_row(into: str, suffix: str = "") -> str:
    """The statement that inserts one row, from parameters named like its columns. Called at import, once per statement.

    `insert_row("INSERT INTO leases (name, holder)", "ON CONFLICT DO NOTHING")` adds `VALUES (:name, :holder)`.
    """
    columns = into[into.index("(") + 1 : into.index(")")].split(",")
    values = ", ".join(f":{column.strip()}" for column in columns)
    return f"{into} VALUES ({values}) {suffix}"


def containing(part: str) -> str:
    """A LIKE pattern, escaped with `!`, for texts that contain `part`."""
    return f"%{_escaped(part)}%"


def beginning(part: str) -> str:
    """A LIKE pattern, escaped with `!`, for texts that begin with `part`."""
    return f"{_escaped(part)}%"


def _escaped(part: str) -> str:
    for special in "!%_":
        part = part.replace(special, "!" + special)
    return part


@cache
def require_read(sql: str) -> None:
    """Reject a statement that is not a SELECT: a look-up outside a unit may be retried, so it must not change data."""
    if not sql.lstrip().upper().startswith("SELECT"):
        raise ValueError(f"not a look-up: {sql.strip()[:40]}")
