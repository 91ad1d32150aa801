"""Live streams: the time from the response to a change until all listeners have its event, and the memory they need."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from statistics import median

import httpx
from tests.bed.many_listeners import ManyListeners
from tests.bed.memory import resident_memory
from tests.bed.processes import HubProcess, hub_process, hubgate

from bench import webhook_hubs
from bench.harness import Table, run_interleaved, table
from bench.webhook_hubs import POSTGRES, SQLITE, HubConfig
from bench.workspace import Workspace

LISTENERS = 1000
EVENTS = 20
MIB = 1024 * 1024
_PATH = "/api/settings/webhooks"


@dataclass
class _Followed:
    """A running hub with a webhook whose events are followed."""

    hub: HubProcess
    client: httpx.AsyncClient
    token: str
    webhook_id: str
    changes: int = 0
    # For each event: when half of the listeners had it, in milliseconds.
    medians: list[float] = field(default_factory=list)
    mebibytes: float = 0.0

    async def turn(self, listeners: int, events: int) -> float:
        """The median over events of the time until the last listener has the event, in milliseconds."""
        path = f"{_PATH}/{self.webhook_id}/events?after=latest"
        before = resident_memory(self.hub.process.pid)
        streams = ManyListeners(self.hub.url, path, self.token)
        try:
            await streams.open(listeners)
            found = [await self._event(streams) for _ in range(events)]
            # Later rounds use the memory of the first again.
            self.mebibytes = max(self.mebibytes, (resident_memory(self.hub.process.pid) - before) / MIB)
        finally:
            await streams.close()
        self.medians += [1000 * median(latencies) for latencies in found]
        return median(1000 * latencies[-1] for latencies in found)

    async def _event(self, streams: ManyListeners) -> list[float]:
        # The creation of the repo is the first event.
        self.changes += 1
        return await streams.latencies(self.changes + 1, self._change)

    async def _change(self) -> None:
        body = {"discussionsDisabled": self.changes % 2 == 1}
        (await self.client.put("/api/models/ada/tiny/settings", json=body)).raise_for_status()


def measure(workspace: Workspace) -> Iterator[Table]:
    events = max(int(EVENTS * workspace.budget.scale), 3)
    with contextlib.ExitStack() as stack:
        runner = stack.enter_context(asyncio.Runner())
        turns: dict[str, Callable[[], float]] = {}
        followed: dict[str, _Followed] = {}
        for engine in (SQLITE, POSTGRES):
            for listeners in (1, LISTENERS):
                hub_config = webhook_hubs.prepare_hub(workspace, engine, f"listen_{listeners}")
                hub = stack.enter_context(hub_process(hub_config.folder, new=True, **hub_config.variables))
                opening = _followed(hub_config, hub)
                name = f"{engine.rpartition(' ')[2]}, {listeners:,} listener{'s' if listeners > 1 else ''}"
                followed[name] = runner.run(opening.__aenter__())
                stack.callback(partial(_close, runner, opening))
                turns[name] = partial(_turn, runner, followed[name], listeners, events)
        last = run_interleaved(turns, workspace.budget.rounds)
    more = {name: {"p50 ms": median(each.medians), "MiB": each.mebibytes} for name, each in followed.items()}
    yield table(f"From response to the last listener, {events} changes per round", "ms", next(iter(turns)), last, more)


def _turn(runner: asyncio.Runner, followed: _Followed, listeners: int, events: int) -> float:
    return runner.run(followed.turn(listeners, events))


def _close(runner: asyncio.Runner, opening: "contextlib.AbstractAsyncContextManager[_Followed]") -> None:
    runner.run(opening.__aexit__(None, None, None))


@contextlib.asynccontextmanager
async def _followed(hub_config: HubConfig, hub: HubProcess) -> AsyncIterator[_Followed]:
    for command in (
        ("user", "create", "ada", "--email", "ada@example.org", "--verified", "--password-stdin"),
        ("token", "create", "ada", "--role", "write"),
    ):
        done = hubgate("admin", *command, cwd=hub_config.folder, stdin=b"a long password\n", **hub_config.variables)
        assert done.returncode == 0, done.stderr
    token = done.stdout.strip()
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(base_url=hub.url, headers=headers, timeout=60) as client:
        body = {"pull": True, "watched": [{"type": "user", "name": "ada"}]}
        created = (await client.post(_PATH, json=body)).raise_for_status().json()["webhook"]
        (await client.post("/api/repos/create", json={"name": "tiny"})).raise_for_status()
        events = f"{_PATH}/{created['id']}/events"
        for _ in range(600):
            if (await client.get(events)).json()["events"]:
                break
            await asyncio.sleep(0.05)
        yield _Followed(hub, client, token, created["id"])
