"""The time from the response to a commit until the receiver has the delivery: when idle, and under load."""

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
from bench.harness import Table, run_interleaved, table
from bench.running_receiver import Receiver
from bench.webhook_hubs import POSTGRES, SQLITE, HubConfig, WatchedUser
from bench.webhook_peers import BULLMQ
from bench.workspace import Workspace

# Commits per turn, with random pauses so that they do not synchronize with polling.
COMMITS = 40
SHORTEST_PAUSE, LONGEST_PAUSE = 0.05, 0.15
# Webhooks that generate the load: as many as in the middle table of rates.
WEBHOOKS = 100
TICK = 0.1
RECEIPT_SECONDS = 30.0


@dataclass(frozen=True)
class _LatencyHub:
    """A running hub with a single webhook on one user's repo, and many on another user's repos."""

    hub: HubProcess
    headers: Mapping[str, str]
    repo: str
    load: WatchedUser
    receiver: Receiver

    async def latencies(self, commits: int, deliveries_per_second: float) -> list[float]:
        """The latency of each commit's delivery in seconds."""
        async with httpx.AsyncClient(base_url=self.hub.url, headers=self.headers, timeout=60) as client:
            await self._commit(client)
            loading = asyncio.create_task(self._generate_load(deliveries_per_second)) if deliveries_per_second else None
            committed_at = {}
            for _ in range(commits):
                await asyncio.sleep(random.uniform(SHORTEST_PAUSE, LONGEST_PAUSE))
                committed_at[await self._commit(client)] = time.monotonic()
            received_at = await self._wait_for_receipt(set(committed_at))
        if loading is not None:
            loading.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await loading
            await self.load.wait_until_settled()
        return [received_at[sha] - at for sha, at in committed_at.items()]

    async def _commit(self, client: httpx.AsyncClient) -> str:
        header = {"key": "header", "value": {"summary": "A change"}}
        file = {"key": "file", "value": {"path": "notes.txt", "content": secrets.token_hex(500), "encoding": "utf-8"}}
        body = f"{json.dumps(header)}\n{json.dumps(file)}\n"
        response = await client.post(
            f"/api/models/{self.repo}/commit/main", content=body, headers={"Content-Type": "application/x-ndjson"}
        )
        return str(response.raise_for_status().json()["commitOid"])

    async def _generate_load(self, deliveries_per_second: float) -> None:
        """Commit events at a constant rate, regardless of the backlog."""
        began, committed = time.monotonic(), 0
        while True:
            due = int((time.monotonic() - began) * deliveries_per_second / WEBHOOKS)
            await self.load.commit(due - committed)
            committed = due
            await asyncio.sleep(TICK)

    async def _wait_for_receipt(self, shas: set[str]) -> dict[str, float]:
        """Wait until the receiver has the deliveries of these commits and return the time of receipt by commit."""
        found: dict[str, float] = {}
        deadline = time.monotonic() + RECEIPT_SECONDS
        while not shas <= set(found):
            if time.monotonic() > deadline:
                raise RuntimeError(f"{len(shas - set(found))} of {len(shas)} deliveries were not received")
            await asyncio.sleep(0.05)
            for at, body in await asyncio.to_thread(self.receiver.timed):
                # The creation of the repo may have been delivered too.
                for change in json.loads(body).get("updatedRefs", ()):
                    found.setdefault(change["newSha"], at)
        return found


def measure(workspace: Workspace, receiver: Receiver, rates: Mapping[str, float]) -> Table:
    """Measure latency. `rates` are the maximum deliveries per second of BullMQ and each engine: the loads are half of
    BullMQ's rate, and half of the engine's own.
    """
    commits = max(int(COMMITS * workspace.budget.scale), 5)
    latencies: dict[str, list[float]] = {}
    with contextlib.ExitStack() as stack:
        runner = stack.enter_context(asyncio.Runner())
        turns: dict[str, Callable[[], float]] = {}
        for engine in (SQLITE, POSTGRES):
            hub_config = webhook_hubs.prepare_hub(workspace, engine, "late")
            # The delivery process is a child of the hub, as in production: on any core, at a lower priority.
            hub = stack.enter_context(hub_process(hub_config.folder, **hub_config.variables))
            latency_hub = _enter(stack, runner, _create_latency_hub(hub_config, hub, receiver))
            database = engine.rpartition(" ")[2]
            loads = {"idle": 0.0, "half of BullMQ's rate": rates[BULLMQ] / 2, "half of its own rate": rates[engine] / 2}
            for load, rate in loads.items():
                name = f"{database}, {load}"
                latencies[name] = []
                turns[name] = partial(_turn, runner, latency_hub, commits, rate, latencies[name])
        p50 = run_interleaved(turns, workspace.budget.rounds)
    more = {
        name: {"p50 ms": 1000 * median(all_latencies), "p99 ms": 1000 * _p99(all_latencies)}
        for name, all_latencies in latencies.items()
    }
    return table(f"From response to receipt, {commits} commits per round", "p50 µs", next(iter(turns)), p50, more)


def _turn(
    runner: asyncio.Runner, latency_hub: _LatencyHub, commits: int, load: float, all_latencies: list[float]
) -> float:
    found = runner.run(latency_hub.latencies(commits, load))
    all_latencies += found
    return 1e6 * median(found)


def _p99(figures: list[float]) -> float:
    return quantiles(figures, n=100, method="inclusive")[98]


@contextlib.asynccontextmanager
async def _create_latency_hub(hub_config: HubConfig, hub: HubProcess, receiver: Receiver) -> AsyncIterator[_LatencyHub]:
    async with (
        webhook_hubs.create_watched_user(hub_config, WEBHOOKS, receiver.url, "busy") as load,
        webhook_hubs.create_watched_user(hub_config, 1, receiver.timed_url, "ada", repos=1) as measured,
    ):
        command = ("admin", "token", "create", "ada", "--role", "write")
        done = hubgate(*command, cwd=hub_config.folder, stdin=b"", **hub_config.variables)
        assert done.returncode == 0, done.stderr
        headers = {"Authorization": f"Bearer {done.stdout.strip()}"}
        yield _LatencyHub(hub, headers, f"ada/{measured.repos[0].name}", load, receiver)


def _enter(
    stack: contextlib.ExitStack, runner: asyncio.Runner, opening: "contextlib.AbstractAsyncContextManager[_LatencyHub]"
) -> _LatencyHub:
    entered = runner.run(opening.__aenter__())
    stack.callback(lambda: runner.run(opening.__aexit__(None, None, None)))
    return entered
