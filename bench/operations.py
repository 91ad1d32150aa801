"""Requests of apps to a hub, on both engines in the same rounds, each compared with a bare handler."""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any, Generic, TypeVar

import asyncpg
from tests.bed.processes import HUBGATE, HubProcess, hub_process

from bench.harness import Line, Table, line, run_interleaved, warm_up
from bench.http_requests import BARE, CONNECTIONS, Contestant, Server, bare_process, medians, response_to
from bench.load import REPEAT, Request
from bench.workspace import Workspace
from hubgate.server.resources import Hub
from hubgate.server.settings import load
from hubgate.server.startup import opened_for_operator

TURN = 1.0
SQLITE, POSTGRES = "SQLite", "PostgreSQL"

Turn = Mapping[str, float]
# The users and apps created in the hub before the clock starts, from which requests are prepared.
P = TypeVar("P")


@dataclass(frozen=True)
class Operation(Generic[P]):
    name: str
    mode: str
    prepare: Callable[[P], Coroutine[Any, Any, list[Request]]]


@dataclass(frozen=True)
class Subject(Generic[P]):
    """A set of operations. `fixtures` fills a hub opened beside the running server, as operator commands open it."""

    name: str
    title: str
    operations: Sequence[Operation[P]]
    fixtures: Callable[[Hub], Awaitable[P]]


@dataclass(frozen=True)
class Engine(Generic[P]):
    """A running hub on one engine. `start` runs it again after it was stopped."""

    hub: HubProcess
    fixtures: P
    start: Callable[[], contextlib.AbstractContextManager[HubProcess]]

    @property
    def server(self) -> Server:
        return Server.of(self.hub)


def compare(workspace: Workspace, subject: Subject[P]) -> list[Table]:
    """Measure the operations and return a table for each engine."""
    seconds = workspace.budget.seconds(TURN)
    with contextlib.ExitStack() as stack:
        runner = stack.enter_context(asyncio.Runner())
        engines = {name: run_engine(workspace, stack, runner, subject, name) for name in (SQLITE, POSTGRES)}
        contestants: dict[str, Contestant] = {}
        for operation in subject.operations:
            sample = runner.run(operation.prepare(engines[SQLITE].fixtures))
            bare = stack.enter_context(bare_process(_responses(engines[SQLITE].server, sample)))
            contestants[_key(operation, BARE)] = Contestant(bare, partial(list, sample[1:] or sample))
            for name, engine in engines.items():
                requests = request_source(runner, operation, engine.fixtures)
                contestants[_key(operation, name)] = Contestant(engine.server, requests, operation.mode)
        turns = run_interleaved(
            warm_up({name: partial(contestant.load, seconds) for name, contestant in contestants.items()}),
            workspace.budget.rounds,
        )
    return [_table(subject, name, turns) for name in engines]


def run_engine(
    workspace: Workspace,
    stack: contextlib.ExitStack,
    runner: asyncio.Runner,
    subject: Subject[P],
    name: str,
    pin: Callable[[Sequence[str]], list[str]] | None = None,
) -> Engine[P]:
    """Run a hub until `stack` is closed; with `pin`, in new processes started by the command that it returns."""
    folder = workspace.subfolder(f"{subject.name}-{name.lower()}")
    settings: dict[str, str] = {}
    if name == POSTGRES:
        settings = {"database_url": workspace.postgres_database(subject.name), "secret_key": secrets.token_urlsafe(48)}
    variables = {f"HUBGATE_{key.upper()}": value for key, value in settings.items()}
    command = {"program": pin([*HUBGATE, "serve"]), "new": True} if pin else {}
    start = partial(hub_process, folder, **command, **variables)
    hub = stack.enter_context(start())
    opening = _open_fixtures({**settings, "base_url": hub.url, "data_dir": str(folder / "var")}, subject)
    fixtures = runner.run(opening.__aenter__())
    stack.callback(lambda: runner.run(opening.__aexit__(None, None, None)))
    if name == POSTGRES:
        runner.run(_analyze(settings["database_url"]))
    return Engine(hub, fixtures, start)


@contextlib.asynccontextmanager
async def _open_fixtures(flags: Mapping[str, str], subject: Subject[P]) -> AsyncIterator[P]:
    async with opened_for_operator(load(flags, environment={})) as hub:
        yield await subject.fixtures(hub)


async def _analyze(url: str) -> None:
    """Update statistics: plans for empty tables would distort the results (see the README)."""
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("ANALYZE")
    finally:
        await connection.close()


def request_source(runner: asyncio.Runner, operation: Operation[P], fixtures: P) -> Callable[[], Sequence[Request]]:
    """A function that prepares the requests of a turn; repeatable requests are prepared once."""
    if operation.mode == REPEAT:
        return partial(list, runner.run(operation.prepare(fixtures)))
    return lambda: runner.run(operation.prepare(fixtures))


def _responses(server: Server, sample: Sequence[Request]) -> dict[str, Any]:
    return {sample[0].path: response_to(server, sample[0])}


def _key(operation: Operation[P], contestant: str) -> str:
    return f"{operation.name}, {contestant}"


def _table(subject: Subject[P], engine: str, turns: Mapping[str, Sequence[Turn]]) -> Table:
    pairs = {each.name: (turns[_key(each, engine)], turns[_key(each, BARE)]) for each in subject.operations}
    lines = [_line(name, *pair) for name, pair in pairs.items()]
    return Table(f"{subject.title}, {engine}, {CONNECTIONS} connections", "requests/s", BARE, lines)


def _line(name: str, turns: Sequence[Turn], bare: Sequence[Turn]) -> Line:
    """The result of an operation relative to its bare handler, which sends the same response."""
    rates, base = ([turn["rate"] for turn in taken] for taken in (turns, bare))
    return line(name, rates, base, {"bare/s": median(base), **medians(turns)})
