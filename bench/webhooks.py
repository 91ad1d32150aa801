"""Webhooks: deliveries per second on one core, from the committed event to the stored result, and their latency."""

import asyncio
import contextlib
import json
import time
from collections.abc import Callable, Iterator
from functools import partial

from tests.bed.processes import ROOT

from bench import webhook_hubs, webhook_lateness, webhook_peers
from bench.ground import Ground
from bench.harness import Table, interleaved, table, warmed_up
from bench.receiving import Receiver, receiver_process
from bench.serving import Server, medians
from bench.webhook_hubs import POSTGRES, SECRET, SQLITE, Place, Watching
from bench.webhook_peers import AT_ONCE, BULLMQ, CELERY, Peer, said

# Webhooks and events per turn; the number of deliveries is their product.
SIZES = ((1, 2_000), (100, 20), (10_000, 1))
# The maximum of deliveries per turn of Celery, whose turns would otherwise take most of the time. The number of
# webhooks makes no difference to a queue.
MOST_OF_CELERY = 500

Turn = dict[str, float]


def measure(ground: Ground) -> Iterator[Table]:
    with receiver_process() as receiver:
        highest: dict[str, float] = {}
        for webhooks, events in _sizes(ground):
            found = _rates(ground, receiver, webhooks, events)
            if webhooks == webhook_lateness.WEBHOOKS:
                highest = {line.name: line.median for line in found.lines}
            yield found
        yield webhook_lateness.measure(ground, receiver, highest)


def _sizes(ground: Ground) -> list[tuple[int, int]]:
    """Numbers of webhooks and events, smaller in a quick run."""
    scale = ground.budget.scale
    return [
        (max(int(webhooks * scale), 1) if events == 1 else webhooks, max(int(events * scale), 1))
        for webhooks, events in SIZES
    ]


def _rates(ground: Ground, receiver: Receiver, webhooks: int, events: int) -> Table:
    with contextlib.ExitStack() as stack:
        runner = stack.enter_context(asyncio.Runner())
        contestants: dict[str, Callable[[], Turn]] = {}
        for engine in (SQLITE, POSTGRES):
            place = webhook_hubs.prepared(ground, engine, str(webhooks))
            opening = webhook_hubs.watched(place, webhooks, receiver.url)
            watching = runner.run(opening.__aenter__())
            stack.callback(partial(_close, runner, opening))
            contestants[engine] = partial(_by_hub, runner, place, watching, receiver, webhooks, events)
        for name in (BULLMQ, CELERY):
            socket = stack.enter_context(webhook_peers.redis_process(ground, f"{name}-{webhooks}".lower()))
            plan = {"socket": str(socket), "url": receiver.url, "secret": SECRET, "atOnce": AT_ONCE, "body": _body()}
            watching_webhooks = min(webhooks, MOST_OF_CELERY) if name == CELERY else webhooks
            committed = min(events, MOST_OF_CELERY // watching_webhooks) if name == CELERY else events
            peer = Peer(name, socket.parent, {**plan, "webhooks": watching_webhooks, "events": committed})
            contestants[name] = partial(_by_peer, peer, receiver)
        turns = interleaved(warmed_up(contestants), ground.budget.rounds)
    rates = {name: [turn["rate"] for turn in taken] for name, taken in turns.items()}
    more = {name: medians(taken) for name, taken in turns.items()}
    title = (
        f"Deliveries, {webhooks:,} webhook{'s' if webhooks > 1 else ''}, {events:,} event{'s' if events > 1 else ''}"
    )
    return table(title, "deliveries/s", BULLMQ, rates, more)


def _close(runner: asyncio.Runner, opening: "contextlib.AbstractAsyncContextManager[Watching]") -> None:
    runner.run(opening.__aexit__(None, None, None))


def _by_hub(
    runner: asyncio.Runner, place: Place, watching: Watching, receiver: Receiver, webhooks: int, events: int
) -> Turn:
    with webhook_hubs.delivering(place) as process:
        runner.run(watching.settled())
        with _counted(receiver, process.pid, webhooks * events) as figures:
            runner.run(watching.commit(events))
            runner.run(watching.settled())
    return figures


def _by_peer(peer: Peer, receiver: Receiver) -> Turn:
    deliveries = peer.plan["webhooks"] * peer.plan["events"]
    with (
        peer.delivering() as process,
        peer.committing() as producer,
        _counted(receiver, process.pid, deliveries) as figures,
    ):
        assert producer.stdin is not None
        producer.stdin.write(b"\n")
        producer.stdin.flush()
        if said(producer) != "done":
            raise RuntimeError((peer.folder / "commit.log").read_text())
    return figures


@contextlib.contextmanager
def _counted(receiver: Receiver, pid: int, deliveries: int) -> Iterator[Turn]:
    """Measure the block; the figures are filled in at its end. Each delivery must be received exactly once."""
    server, figures = Server(0, pid), Turn()
    count, busy = receiver.count()
    began, used = time.monotonic(), server.processor_seconds()
    yield figures
    took, used = time.monotonic() - began, server.processor_seconds() - used
    received, busy_after = receiver.count()
    if received - count != deliveries:
        raise RuntimeError(f"{received - count} deliveries arrived, not {deliveries}")
    figures["rate"] = deliveries / took
    figures["processor µs"] = 1e6 * used / deliveries
    figures["receiver's core %"] = 100 * (busy_after - busy) / took


def _body() -> str:
    """A payload of the hub, with the same length as the payloads in this benchmark."""
    payload = json.loads((ROOT / "contract/events/repo.content.update.commit.json").read_text())
    return json.dumps({**payload, "webhook": {"id": "0" * 24, "version": 3}}, separators=(",", ":"))
