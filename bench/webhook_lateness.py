"""How long after a commit was answered its webhook's receiver has it: while nothing else happens, and at half load."""

import asyncio
import contextlib
import json
import random
import secrets
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from statistics import median, quantiles

import httpx
from tests.bed.processes import HubProcess, hub_process, hubgate

from bench import webhook_hubs
from bench.ground import Ground
from bench.harness import Table, interleaved, table
from bench.receiving import Receiver
from bench.webhook_hubs import POSTGRES, SQLITE, Place, Watching

# Commits of one turn; their pauses are random, so that they do not fall in step with anything that polls.
COMMITS = 40
SHORTEST_PAUSE, LONGEST_PAUSE = 0.05, 0.15
# Who makes the load: as many webhooks as the middle table of rates has.
WEBHOOKS = 100
TICK = 0.1
ARRIVE_SECONDS = 30.0


@dataclass(frozen=True)
class _Pushing:
    """A running hub, with one webhook on one user's repo and many on another's."""

    hub: HubProcess
    headers: Mapping[str, str]
    repo: str
    load: Watching
    receiver: Receiver

    async def lateness(self, commits: int, deliveries_a_second: float) -> list[float]:
        """Seconds, of each commit."""
        async with httpx.AsyncClient(base_url=self.hub.url, headers=self.headers, timeout=60) as client:
            await self._commit(client)
            loading = asyncio.create_task(self._keep_busy(deliveries_a_second)) if deliveries_a_second else None
            answered = {}
            for _ in range(commits):
                await asyncio.sleep(random.uniform(SHORTEST_PAUSE, LONGEST_PAUSE))
                answered[await self._commit(client)] = time.monotonic()
            arrived = await self._arrived(set(answered))
        if loading is not None:
            loading.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await loading
            await self.load.settled()
        return [arrived[sha] - at for sha, at in answered.items()]

    async def _commit(self, client: httpx.AsyncClient) -> str:
        header = {"key": "header", "value": {"summary": "A change"}}
        file = {"key": "file", "value": {"path": "notes.txt", "content": secrets.token_hex(500), "encoding": "utf-8"}}
        body = f"{json.dumps(header)}\n{json.dumps(file)}\n"
        answer = await client.post(
            f"/api/models/{self.repo}/commit/main", content=body, headers={"Content-Type": "application/x-ndjson"}
        )
        return str(answer.raise_for_status().json()["commitOid"])

    async def _keep_busy(self, deliveries_a_second: float) -> None:
        """Evenly, whatever is still on its way."""
        began, committed = time.monotonic(), 0
        while True:
            wanted = int((time.monotonic() - began) * deliveries_a_second / WEBHOOKS)
            await self.load.commit(wanted - committed)
            committed = wanted
            await asyncio.sleep(TICK)

    async def _arrived(self, shas: set[str]) -> dict[str, float]:
        found: dict[str, float] = {}
        give_up_at = time.monotonic() + ARRIVE_SECONDS
        while not shas <= set(found):
            if time.monotonic() > give_up_at:
                raise RuntimeError(f"{len(shas - set(found))} of {len(shas)} did not arrive")
            await asyncio.sleep(0.05)
            for at, body in await asyncio.to_thread(self.receiver.timed):
                # That the repo was made may have been told too.
                for change in json.loads(body).get("updatedRefs", ()):
                    found.setdefault(change["newSha"], at)
        return found


def measure(ground: Ground, receiver: Receiver, rates: Mapping[str, float]) -> Table:
    """`rates` are deliveries a second that each engine makes at most; half of that is the load."""
    commits = max(int(COMMITS * ground.budget.scale), 5)
    all_of: dict[str, list[float]] = {}
    with contextlib.ExitStack() as leaving:
        runner = leaving.enter_context(asyncio.Runner())
        turns: dict[str, Callable[[], float]] = {}
        for engine in (SQLITE, POSTGRES):
            place = webhook_hubs.prepared(ground, engine, "late")
            # With its delivery process beside it, as operators run it: on any core, at a lower priority.
            hub = leaving.enter_context(hub_process(place.folder, **place.variables))
            pushing = _entered(leaving, runner, _pushing(place, hub, receiver))
            word = engine.rpartition(" ")[2]
            for name, load in ((f"{word}, idle", 0.0), (f"{word}, half load", rates[engine] / 2)):
                all_of[name] = []
                turns[name] = partial(_turn, runner, pushing, commits, load, all_of[name])
        p50 = interleaved(turns, ground.budget.rounds)
    more = {name: {"p50 ms": 1000 * median(every), "p99 ms": 1000 * _p99(every)} for name, every in all_of.items()}
    return table(f"From answer to arrival, {commits} commits a round", "p50 µs", next(iter(turns)), p50, more)


def _turn(runner: asyncio.Runner, pushing: _Pushing, commits: int, load: float, every: list[float]) -> float:
    found = runner.run(pushing.lateness(commits, load))
    every += found
    return 1e6 * median(found)


def _p99(figures: list[float]) -> float:
    return quantiles(figures, n=100, method="inclusive")[98]


@contextlib.asynccontextmanager
async def _pushing(place: Place, hub: HubProcess, receiver: Receiver) -> AsyncIterator[_Pushing]:
    async with (
        webhook_hubs.watched(place, WEBHOOKS, receiver.url, "busy") as load,
        webhook_hubs.watched(place, 1, receiver.timed_url, "ada", repos=1) as own,
    ):
        asked = ("admin", "token", "create", "ada", "--role", "write")
        done = hubgate(*asked, cwd=place.folder, stdin=b"", **place.variables)
        assert done.returncode == 0, done.stderr
        headers = {"Authorization": f"Bearer {done.stdout.strip()}"}
        yield _Pushing(hub, headers, f"ada/{own.repos[0].name}", load, receiver)


def _entered(
    leaving: contextlib.ExitStack, runner: asyncio.Runner, opening: "contextlib.AbstractAsyncContextManager[_Pushing]"
) -> _Pushing:
    entered = runner.run(opening.__aenter__())
    leaving.callback(lambda: runner.run(opening.__aexit__(None, None, None)))
    return entered
