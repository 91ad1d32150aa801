"""Statements that ran on SQLite are checked on PostgreSQL, so that most tests need only one engine.

Every distinct statement of a test that runs on SQLite only is recorded with the types of its parameters. After the
test, PostgreSQL prepares the new statements, and the types it expects are compared with the recorded types.
"""

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import asyncpg
from tests.bed.blocking import run_blocking

from hubgate.server.storage.batching import statement_for_all
from hubgate.server.storage.database import Batch
from hubgate.server.storage.sqlite import SqliteDatabase
from hubgate.server.storage.sqlite_connection import SqliteTx
from hubgate.server.storage.sqltext import NO_PARAMS, Params, RowStatement, as_single_statement, positional

# The SQL for PostgreSQL, and the names of its parameters in order.
_Statement = tuple[str, tuple[str, ...]]
# The name of a parameter and the type of a value passed for it.
_ParameterType = tuple[str, type]

_ACCEPTED: dict[str, tuple[type, ...]] = {
    "text": (str,),
    "varchar": (str,),
    "int8": (int,),
    "int4": (int,),
    "bytea": (bytes, memoryview),
}
# Statements on SQLite's catalog, and SQLite's form of a batch.
_ONLY_FOR_SQLITE = ("sqlite_master", "search_words", "WITH batch(", "WITH done(")

_checked: dict[_Statement, set[_ParameterType]] = {}
_unchecked: dict[_Statement, set[_ParameterType]] = {}


def start_recording() -> None:
    """Start recording in this process."""
    for name in ("one", "all", "exec"):
        setattr(SqliteTx, name, _recording(getattr(SqliteTx, name), lambda params=NO_PARAMS: [params]))
    SqliteTx.exec_many = _recording(SqliteTx.exec_many, lambda rows: rows)  # type: ignore[method-assign]
    SqliteTx.each = _recording(SqliteTx.each, lambda rows, params=NO_PARAMS: [*rows, params])  # type: ignore[method-assign]
    SqliteDatabase.batch = _recording(SqliteDatabase.batch, lambda row: [row])  # type: ignore[method-assign]


@contextlib.contextmanager
def check_on_postgres(urls: Sequence[str]) -> Iterator[None]:
    """Prepare statements that are executed for the first time on each of these servers."""
    _unchecked.clear()
    yield
    # A hub that is stopping may still execute statements.
    found = {statement: _unchecked.pop(statement) for statement in list(_unchecked)}
    if found and urls:
        problems = [problem for url in urls for problem in run_blocking(_problems(url, found))]
        assert not problems, "\n\n".join(problems)
        for statement, given in found.items():
            _checked.setdefault(statement, set()).update(given)


async def _problems(url: str, found: dict[_Statement, set[_ParameterType]]) -> list[str]:
    problems: list[str] = []
    connection = await asyncpg.connect(url)
    try:
        for (sql, names), given in found.items():
            try:
                prepared = await connection.prepare(sql)
            except asyncpg.PostgresError as error:
                problems.append(f"PostgreSQL rejects a statement: {error}\n{sql}")
                continue
            kinds = [kind.name.removesuffix("[]") for kind in prepared.get_parameters()]
            expected = dict(zip(names, kinds, strict=True))
            problems += [
                f":{name} is {expected[name]} in PostgreSQL and was given a {kind.__name__}\n{sql}"
                for name, kind in given
                if name in expected and not issubclass(kind, (*_ACCEPTED[expected[name]], type(None)))
            ]
    finally:
        await connection.close()
    return problems


def _recording(method: Callable[..., Any], rows_of: Callable[..., Sequence[Params]]) -> Callable[..., Any]:
    @functools.wraps(method)
    async def recorded(self: object, op: str | RowStatement | Batch, *arguments: Any) -> Any:
        if not (isinstance(op, str) and any(part in op for part in _ONLY_FOR_SQLITE)):
            _record_statement(_as_prepared(op), rows_of(*arguments))
        return await method(self, op, *arguments)

    return recorded


def _as_prepared(op: str | RowStatement | Batch) -> _Statement:
    match op:
        case str():
            return positional(op)
        case RowStatement():
            sql, names = as_single_statement(op)
            return sql, (*op.columns, *names)
        case Batch():
            return statement_for_all(op), tuple(op.columns)


def _record_statement(statement: _Statement, rows: Sequence[Params]) -> None:
    given = {(name, type(value)) for row in rows for name, value in row.items()}
    known = _checked.get(statement)
    if known is None or not given <= known:
        _unchecked.setdefault(statement, set()).update(given)
