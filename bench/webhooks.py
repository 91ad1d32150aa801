"""Webhooks: deliveries per second on one core, from the committed event to the stored result, and their latency."""

import asyncio
import contextlib
import json
import time
from collections.abc import Callable, Iterator
from functools import partial

from tests.bed.processes import ROOT

from bench import webhook_history, webhook_hubs, webhook_latency, webhook_peers
from bench.harness import Table, run_interleaved, table, warm_up
from bench.http_requests import Server, medians
from bench.running_receiver import Receiver, receiver_process
from bench.webhook_hubs import POSTGRES, SECRET, SQLITE, HubConfig, WatchedUser
from bench.webhook_peers import AT_ONCE, BULLMQ, CELERY, Peer, next_message
from bench.workspace import Workspace

# Webhooks and events per turn; the number of deliveries is their product.
SIZES = ((1, 2_000), (100, 20), (10_000, 1))
# The same on a hub with 100,000 webhooks and five million past deliveries of another user; not in a quick run.
WITH_HISTORY = SIZES[1]
# The maximum number of deliveries per turn of Celery, whose turns would otherwise take most of the time. The number of
# webhooks makes no difference to a queue.
MAX_CELERY_DELIVERIES = 500

Turn = dict[str, float]


def measure(workspace: Workspace) -> Iterator[Table]:
    with receiver_process() as receiver:
        max_rates: dict[str, float] = {}
        for webhooks, events in _sizes(workspace):
            found = _rates(workspace, receiver, webhooks, events)
            if webhooks == webhook_latency.WEBHOOKS:
                max_rates = {line.name: line.median for line in found.lines}
            yield found
        if workspace.budget.scale == 1:
            yield _rates(workspace, receiver, *WITH_HISTORY, has_history=True)
        yield webhook_latency.measure(workspace, receiver, max_rates)


def _sizes(workspace: Workspace) -> list[tuple[int, int]]:
    """Numbers of webhooks and events, smaller in a quick run."""
    scale = workspace.budget.scale
    return [
        (max(int(webhooks * scale), 1) if events == 1 else webhooks, max(int(events * scale), 1))
        for webhooks, events in SIZES
    ]


def _rates(workspace: Workspace, receiver: Receiver, webhooks: int, events: int, *, has_history: bool = False) -> Table:
    name = f"{webhooks}-past" if has_history else str(webhooks)
    with contextlib.ExitStack() as stack:
        runner = stack.enter_context(asyncio.Runner())
        contestants: dict[str, Callable[[], Turn]] = {}
        for engine in (SQLITE, POSTGRES):
            hub_config = webhook_hubs.prepare_hub(workspace, engine, name.replace("-", "_"))
            opening = webhook_hubs.create_watched_user(hub_config, webhooks, receiver.url)
            watched_user = runner.run(opening.__aenter__())
            stack.callback(partial(_close, runner, opening))
            if has_history:
                runner.run(webhook_history.fill(watched_user.hub, is_local=engine == SQLITE))
            contestants[engine] = partial(_by_hub, runner, hub_config, watched_user, receiver, webhooks, events)
        for peer_name in (BULLMQ,) if has_history else (BULLMQ, CELERY):
            socket = stack.enter_context(webhook_peers.redis_process(workspace, f"{peer_name}-{name}".lower()))
            plan = {"socket": str(socket), "url": receiver.url, "secret": SECRET, "atOnce": AT_ONCE, "body": _body()}
            peer_webhooks = min(webhooks, MAX_CELERY_DELIVERIES) if peer_name == CELERY else webhooks
            peer_events = min(events, MAX_CELERY_DELIVERIES // peer_webhooks) if peer_name == CELERY else events
            peer = Peer(peer_name, socket.parent, {**plan, "webhooks": peer_webhooks, "events": peer_events})
            contestants[peer_name] = partial(_by_peer, peer, receiver)
        turns = run_interleaved(warm_up(contestants), workspace.budget.rounds)
    rates = {name: [turn["rate"] for turn in taken] for name, taken in turns.items()}
    more = {name: medians(taken) for name, taken in turns.items()}
    title = (
        f"Deliveries, {webhooks:,} webhook{'s' if webhooks > 1 else ''}, {events:,} event{'s' if events > 1 else ''}"
        f"{', five million past deliveries' if has_history else ''}"
    )
    return table(title, "deliveries/s", BULLMQ, rates, more)


def _close(runner: asyncio.Runner, opening: "contextlib.AbstractAsyncContextManager[WatchedUser]") -> None:
    runner.run(opening.__aexit__(None, None, None))


def _by_hub(
    runner: asyncio.Runner,
    hub_config: HubConfig,
    watched_user: WatchedUser,
    receiver: Receiver,
    webhooks: int,
    events: int,
) -> Turn:
    with webhook_hubs.run_delivery_process(hub_config) as process:
        runner.run(watched_user.wait_until_settled())
        with _measure_deliveries(receiver, process.pid, webhooks * events) as figures:
            runner.run(watched_user.commit(events))
            runner.run(watched_user.wait_until_settled())
    return figures


def _by_peer(peer: Peer, receiver: Receiver) -> Turn:
    deliveries = peer.plan["webhooks"] * peer.plan["events"]
    with (
        peer.run_worker() as process,
        peer.run_producer() as producer,
        _measure_deliveries(receiver, process.pid, deliveries) as figures,
    ):
        assert producer.stdin is not None
        producer.stdin.write(b"\n")
        producer.stdin.flush()
        if next_message(producer) != "done":
            raise RuntimeError((peer.folder / "commit.log").read_text())
    return figures


@contextlib.contextmanager
def _measure_deliveries(receiver: Receiver, pid: int, deliveries: int) -> Iterator[Turn]:
    """Measure the block; the figures are filled in at its end. Each delivery must be received exactly once."""
    server, figures = Server(0, pid), Turn()
    _wait_until_idle(server)
    count, busy = receiver.count()
    began, used = time.monotonic(), server.cpu_seconds()
    yield figures
    took, used = time.monotonic() - began, server.cpu_seconds() - used
    received, busy_after = receiver.count()
    if received - count != deliveries:
        raise RuntimeError(f"{received - count} deliveries were received, not {deliveries}")
    figures["rate"] = deliveries / took
    figures["CPU µs"] = 1e6 * used / deliveries
    figures["receiver's core %"] = 100 * (busy_after - busy) / took


def _wait_until_idle(server: Server) -> None:
    """What a process does when it starts is not part of a delivery. The first process on a hub with a long past also
    computes the hourly roll-up of five million deliveries.
    """
    used = server.cpu_seconds()
    deadline = time.monotonic() + 600
    while time.monotonic() < deadline:
        time.sleep(0.5)
        before, used = used, server.cpu_seconds()
        if used - before <= 0.01:
            return
    raise RuntimeError("the process is not idle after ten minutes")


def _body() -> str:
    """A payload of the hub, with the same length as the payloads in this benchmark."""
    payload = json.loads((ROOT / "contract/events/repo.content.update.commit.json").read_text())
    return json.dumps({**payload, "webhook": {"id": "0" * 24, "version": 3}}, separators=(",", ":"))
