"""Sign-in for apps as apps use it: a code redeemed, a token refreshed, its user asked for, a token asked about."""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any

import asyncpg
from tests.bed.processes import hub_process

from bench.ground import Ground
from bench.harness import Line, Table, interleaved, line, warmed_up
from bench.load import ONCE, REPEAT, ROTATE, Request
from bench.serving import BARE, CONNECTIONS, Contestant, Server, answer_to, bare_process, medians
from bench.sign_ins import SignIns, signed_in
from hubgate.server.running import opened_for_operator
from hubgate.server.settings import load

TURN = 1.0
SQLITE, POSTGRES = "SQLite", "PostgreSQL"
# Pairs of access and refresh tokens in the tables before anything is measured on them.
STORED_PAIRS = 5_000
# More than can be redeemed; a turn that runs out of them is a shorter turn.
CODES_A_SECOND = 2_500

Prepare = Callable[[SignIns], Coroutine[Any, Any, list[Request]]]
Turn = Mapping[str, float]


@dataclass(frozen=True)
class Operation:
    name: str
    manner: str
    prepare: Prepare


@dataclass(frozen=True)
class Engine:
    """A running hub, and the people who signed in to it."""

    server: Server
    people: SignIns


def measure(ground: Ground) -> list[Table]:
    seconds = ground.budget.seconds(TURN)
    operations = (
        Operation("code redeemed", ONCE, lambda people: people.redemptions(int(CODES_A_SECOND * seconds))),
        Operation("refresh", ROTATE, SignIns.refreshes),
        Operation("userinfo", REPEAT, SignIns.userinfos),
        Operation("introspection", REPEAT, SignIns.introspections),
    )
    with contextlib.ExitStack() as leaving:
        runner = leaving.enter_context(asyncio.Runner())
        engines = {name: _engine(ground, leaving, runner, name) for name in (SQLITE, POSTGRES)}
        contestants: dict[str, Contestant] = {}
        for operation in operations:
            sample = runner.run(operation.prepare(engines[SQLITE].people))
            bare = leaving.enter_context(bare_process(_answers(engines[SQLITE].server, sample)))
            contestants[_key(operation, BARE)] = Contestant(bare, partial(list, sample[1:]))
            for name, engine in engines.items():
                requests = _prepared(runner, operation, engine.people)
                contestants[_key(operation, name)] = Contestant(engine.server, requests, operation.manner)
        turns = interleaved(
            warmed_up({name: partial(contestant.load, seconds) for name, contestant in contestants.items()}),
            ground.budget.rounds,
        )
    return [_table(name, operations, turns) for name in engines]


def _engine(ground: Ground, leaving: contextlib.ExitStack, runner: asyncio.Runner, name: str) -> Engine:
    folder = ground.subfolder(f"oauth-{name.lower()}")
    settings: dict[str, str] = {}
    if name == POSTGRES:
        settings = {"database_url": ground.postgres_database("oauth"), "secret_key": secrets.token_urlsafe(48)}
    variables = {f"HUBGATE_{key.upper()}": value for key, value in settings.items()}
    hub = leaving.enter_context(hub_process(folder, **variables))
    rows = int(STORED_PAIRS * ground.budget.scale)
    beside = _beside({**settings, "base_url": hub.url, "data_dir": str(folder / "var")}, rows)
    people = runner.run(beside.__aenter__())
    leaving.callback(lambda: runner.run(beside.__aexit__(None, None, None)))
    if name == POSTGRES:
        runner.run(_analyze(settings["database_url"]))
    return Engine(Server.of(hub), people)


@contextlib.asynccontextmanager
async def _beside(flags: Mapping[str, str], rows: int) -> AsyncIterator[SignIns]:
    """The hub opened a second time, as an operator's command opens it beside the server."""
    async with opened_for_operator(load(flags, environment={})) as hub:
        people = await signed_in(hub)
        await people.fill(rows)
        yield people


async def _analyze(url: str) -> None:
    """Or plans made for empty tables would decide; see the README."""
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("ANALYZE")
    finally:
        await connection.close()


def _prepared(runner: asyncio.Runner, operation: Operation, people: SignIns) -> Callable[[], Sequence[Request]]:
    """Before each turn anew, unless the same can be sent again."""
    if operation.manner == REPEAT:
        return partial(list, runner.run(operation.prepare(people)))
    return lambda: runner.run(operation.prepare(people))


def _answers(server: Server, sample: Sequence[Request]) -> dict[str, Any]:
    return {sample[0].path: answer_to(server, sample[0])}


def _key(operation: Operation, who: str) -> str:
    return f"{operation.name}, {who}"


def _table(engine: str, operations: Sequence[Operation], turns: Mapping[str, Sequence[Turn]]) -> Table:
    pairs = {each.name: (turns[_key(each, engine)], turns[_key(each, BARE)]) for each in operations}
    lines = [_line(name, *pair) for name, pair in pairs.items()]
    return Table(f"Sign-in for apps, {engine}, {CONNECTIONS} connections", "requests/s", BARE, lines)


def _line(name: str, turns: Sequence[Turn], bare: Sequence[Turn]) -> Line:
    """Each operation has a bare handler of its own, which repeats its answer."""
    rates, base = ([turn["rate"] for turn in taken] for taken in (turns, bare))
    return line(name, rates, base, {"bare/s": median(base), **medians(turns)})
