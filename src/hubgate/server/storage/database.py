"""The database interface: how the rest of the hub reads and writes, independent of the engine.

A unit of work is `async def unit(tx)` that awaits nothing but `tx`. A unit may run more than once, so it must not
change state outside of itself, and returns its result. Units are atomic, and a unit that fails does not affect
concurrent units. When `write` returns, the change survives a crash of the process or the machine, and every later read
by any process sees it.

A failed statement fails its unit: catching the error does not save the unit's earlier changes. Correctness between
concurrent units comes from conditional statements that report whether they won
(`UPDATE ... WHERE consumed_at IS NULL RETURNING`), never from what a unit read before.
"""

from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any, Protocol, TypeVar

from msgspec import Struct

from hubgate.server.storage.signals import Listening, OnSignal, Signal
from hubgate.server.storage.sqltext import NO_PARAMS, Kind, Params, RowStatement, Statement
from hubgate.server.storage.text_query import TextQuery

T = TypeVar("T")

TOO_MANY_READS = "Too many lists or searches at once. Try again."


class Row(Protocol):
    """A row, indexed by column name or position; unpacks in column order. A slice of it is a tuple."""

    def __getitem__(self, key: Any, /) -> Any: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __len__(self) -> int: ...


class Tx(Protocol):
    """A transaction: the statements that a unit of work may run."""

    async def one(self, sql: str, params: Params = NO_PARAMS) -> Row | None:
        """The first row, or None. Also used for conditional changes with RETURNING."""

    async def all(self, sql: str, params: Params = NO_PARAMS) -> Sequence[Row]: ...

    async def exec(self, sql: str, params: Params = NO_PARAMS) -> int:
        """Run a statement and return the number of changed rows."""

    async def exec_many(self, sql: str, rows: Sequence[Params]) -> None: ...

    async def exec_together(self, statements: Sequence[Statement]) -> None:
        """Change data with several statements in one round trip. They change different rows, and none depends on what
        another changes.
        """

    async def each(self, op: RowStatement, rows: Sequence[Params], params: Params = NO_PARAMS) -> Sequence[Row]:
        """Run a statement for all rows in one round trip, and return all resulting rows.

        `params` are the same for every row.
        """

    def signal(self, signal: Signal) -> None:
        """Tell other processes after the commit that something happened (`Database.listen`)."""


Unit = Callable[[Tx], Coroutine[Any, Any, T]]


class Batch(Struct, frozen=True):
    """A hot statement that many callers run concurrently, which PostgreSQL executes as one statement for all of them.

    `sql` reads its input from a relation named `batch` with the given columns, and returns at most one row for each
    `key`. Keys of a run are unique: a second row with the same key waits for the next run, so that one caller wins.

    `then` changes other tables in the same transaction. It reads from a relation named `done`: the rows of `batch` for
    which `sql` returned one.
    """

    name: str
    key: str
    columns: dict[str, Kind]
    sql: str
    then: str = ""


class TextIndex(Protocol):
    """The index of the words in `search_documents`, which the engine updates with the table."""

    @property
    def matching(self) -> str:
        """SQL: a relation named `d`, the documents that match the query in `parameters`."""

    def parameters(self, query: TextQuery) -> Params: ...

    async def prepare(self, tx: Tx, *, only_searches: bool) -> None:
        """Prepare a transaction for the queries below, once; with `only_searches` if it has no other statements than
        these and look-ups by key.
        """

    async def is_selective(self, tx: Tx, query: TextQuery, limit: int) -> bool:
        """Whether at most `limit` documents match, so that `matching` is the fastest way to find them."""

    async def newest(self, tx: Tx, query: TextQuery, before: int | None, limit: int) -> list[tuple[int, str]]:
        """Number and target of the latest documents that match, latest first; only documents before the number
        `before`.
        """

    async def parts(self, tx: Tx) -> int:
        """How many parts the index has. Each is searched, so many of them make searches slow."""

    async def merge_parts(self, tx: Tx) -> None:
        """Do a small piece of the work to merge all parts into one."""


class DatabaseFacts(Struct, frozen=True):
    """What an operator wants to know about a database."""

    # Such as "SQLite 3.46.0".
    engine: str
    # In bytes, with indexes.
    size: int


class Database(Protocol):
    # How often a process that listens to signals looks for work without one. Tests of signals use longer intervals.
    poll_seconds: float

    @property
    def text_index(self) -> TextIndex: ...

    async def write(self, unit: Unit[T]) -> T: ...

    async def write_long(self, unit: Unit[T]) -> T:
        """Like `write`, for fan-outs and sweeps: does not block the event loop, so that look-ups continue."""

    async def read(self, unit: Unit[T]) -> T:
        """Run a unit of a few look-ups by key, in one snapshot."""

    async def read_long(self, unit: Unit[T]) -> T:
        """Like `read`, for lists, searches and exports: never on the event loop. Callers take turns; a read that is
        still waiting when its client disconnects never starts.
        """

    async def one(self, sql: str, params: Params = NO_PARAMS) -> Row | None:
        """One look-up by key, the cheapest kind of read."""

    async def few(self, sql: str, params: Params = NO_PARAMS) -> Sequence[Row]:
        """Like `one`, for a key with a handful of rows, such as a user's memberships."""

    async def each(self, op: RowStatement, rows: Sequence[Params]) -> Sequence[Row]:
        """Like `one`, for many keys."""

    async def batch(self, op: Batch, row: Params) -> Row | None:
        """Run one row of a hot statement. Like `write`, the change is durable on return."""

    async def listen(self, on_signal: OnSignal) -> Listening:
        """Call `on_signal` after commits of any process that sent a signal. Signals may be lost: poll too, every
        `poll_seconds`.
        """

    async def tables(self) -> frozenset[str]: ...

    async def damage(self) -> str | None:
        """The first damage that a check of the database finds, or None."""

    async def facts(self) -> DatabaseFacts: ...

    async def clock(self) -> int:
        """The database's time, in microseconds."""

    async def end_frozen_sessions(self, after_seconds: float = 5.0) -> None:
        """End transactions of frozen or disconnected processes that the database does not end by itself."""

    async def close(self) -> None: ...


class ForeignAwait(RuntimeError):
    """A unit awaited something other than the database.

    Such an await could block the only SQLite writer, or a PostgreSQL connection and its locks, for as long as a network
    peer wants.
    """

    def __init__(self) -> None:
        super().__init__("a unit of work may await nothing but its transaction")


class UnitClosed(RuntimeError):
    """A transaction was used after its unit had ended, for example by a task that a failed unit had started."""

    def __init__(self) -> None:
        super().__init__("this unit of work has ended")


class ConstraintViolated(Exception):
    """A unique, foreign-key or not-null constraint rejected the unit. Use ON CONFLICT where a conflict is expected."""
