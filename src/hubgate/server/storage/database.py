"""The seam: how the rest of the hub reads and writes, whatever the engine.

A unit of work is `async def unit(tx)` that awaits nothing but `tx`. It may be run more than once, so it keeps no
state outside itself and returns what it has to say. Whole units succeed or leave no trace; a unit that fails does
not disturb others running beside it. On return of `write` the change survives a crash of the process and the machine,
and every later read, by any process, sees it.

A failed statement ends its unit: catching the error does not save what the unit did before. Correctness between
concurrent units comes from conditional statements that report whether they won
(`UPDATE ... WHERE consumed_at IS NULL RETURNING`), never from what a unit read before.
"""

from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from hubgate.server.storage.sqltext import NO_PARAMS, Each, Kind, Params

T = TypeVar("T")

TOO_MANY_READS = "Too many lists or searches at once. Try again."


class Row(Protocol):
    """A row answers to a column's name and to its position, and unpacks in order."""

    def __getitem__(self, key: Any, /) -> Any: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __len__(self) -> int: ...


class Tx(Protocol):
    """What a unit of work may do."""

    async def one(self, sql: str, params: Params = NO_PARAMS) -> Row | None:
        """The first row, or None. Also for a conditional change with RETURNING."""

    async def all(self, sql: str, params: Params = NO_PARAMS) -> Sequence[Row]: ...

    async def exec(self, sql: str, params: Params = NO_PARAMS) -> int:
        """How many rows were changed."""

    async def exec_many(self, sql: str, rows: Sequence[Params]) -> None: ...

    async def each(self, op: Each, rows: Sequence[Params], params: Params = NO_PARAMS) -> Sequence[Row]:
        """One round trip for all of them; what they find or return. `params` are the same for every row."""


Unit = Callable[[Tx], Coroutine[Any, Any, T]]


@dataclass(frozen=True)
class Batch:
    """A hot statement that many callers run at once, on PostgreSQL as one statement for all of them.

    `sql` reads its input from a relation named `batch` with the given columns, and returns at most one row for each
    `key`. Keys of one run differ: a second row with the same key waits for the next run, so that one caller wins.
    """

    name: str
    key: str
    columns: dict[str, Kind]
    sql: str


class Database(Protocol):
    async def write(self, unit: Unit[T]) -> T: ...

    async def write_long(self, unit: Unit[T]) -> T:
        """For fan-outs and sweeps: beside the event loop, so that look-ups go on meanwhile."""

    async def read(self, unit: Unit[T]) -> T:
        """A few look-ups by key that see one moment."""

    async def read_long(self, unit: Unit[T]) -> T:
        """For lists, searches and exports: never on the event loop. Callers take turns, and one that waits for its turn
        when its client leaves is never begun.
        """

    async def one(self, sql: str, params: Params = NO_PARAMS) -> Row | None:
        """One look-up by key, the cheapest read there is."""

    async def few(self, sql: str, params: Params = NO_PARAMS) -> Sequence[Row]:
        """As `one`, for a key that has a handful of rows: a user with their memberships."""

    async def batch(self, op: Batch, row: Params) -> Row | None:
        """Run one row of a hot statement; durable on return like `write`."""

    async def tables(self) -> frozenset[str]: ...

    async def close(self) -> None: ...


class ForeignAwait(RuntimeError):
    """A unit awaited something that is not the database.

    Allowed, it would hold the one SQLite writer, or a PostgreSQL connection and its locks, for as long as a network
    peer likes.
    """

    def __init__(self) -> None:
        super().__init__("a unit of work may await nothing but its transaction")


class UnitIsOver(RuntimeError):
    """A transaction was used after its unit had ended, as a task started inside a refused unit would."""

    def __init__(self) -> None:
        super().__init__("this unit of work is over")


class ConstraintViolated(Exception):
    """A unique, foreign-key or not-null rule refused the unit. Say ON CONFLICT where that is expected."""
