"""Slow checks of state and permission: what was read before a change does not undo what was read after it."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest
from tests.bed.blocking import run_blocking

from hubgate.server.clock import SECOND
from hubgate.server.egress.tunnel_links import TunnelLinks
from hubgate.server.secret import ServerSecret
from hubgate.server.webhooks.delivering.deliverer import CHECKED_AT_ONCE, Deliverer
from hubgate.server.webhooks.delivering.dispatch import Dispatch
from hubgate.server.webhooks.delivering.queue import FRESH_SECONDS
from hubgate.server.webhooks.delivering.webhook_queue import Item, Source, Window
from hubgate.server.webhooks.delivering.windows_store import Checked
from hubgate.server.webhooks.health import WELL
from hubgate.server.webhooks.model import ENABLED, Pace
from hubgate.server.webhooks.requests.request import WebhookSettings

NOW, WEBHOOK = 1_000_000 * SECOND, "0a"
# Without a database and a network: its key cannot be opened, so that every request waits for its deadline and fails.
WEBHOOKS: Any = SimpleNamespace(
    clock=lambda: NOW,
    db=None,
    pace=Pace(),
    secret=ServerSecret("0" * 64),
    tunnels=SimpleNamespace(links=TunnelLinks("https://hub.example", "")),
)


def settings(version: int = 1, resets: int = 0) -> WebhookSettings:
    url = f"https://receiver.example/{version}"
    return WebhookSettings(ENABLED, version, 0, url, None, None, None, b"", resets, 0, 0, None, None, None)


def item(name: str, repo: str = "repo", checked_at: float = 0.0) -> Item:
    return Item(name, WEBHOOK, repo, 1, 0, Source.LANES, due_at=NOW, checked_at=checked_at)


def with_dispatch(work: Callable[[Dispatch], Awaitable[None]], may_start: Callable[[float], bool]) -> None:
    async def run() -> None:
        dispatch = Dispatch(WEBHOOKS, lambda: None, lambda: None, may_start)
        await work(dispatch)
        dispatch.is_void = True
        dispatch.sender.abort()

    run_blocking(run())


def started(dispatch: Dispatch) -> list[tuple[str, str]]:
    """The name and the URL of each request in flight."""
    return [(each.item.id, each.prepared.url) for each in dispatch.sender.in_flight]


def test_slow_check_does_not_bring_back_an_old_url() -> None:
    may_start = True

    async def work(dispatch: Dispatch) -> None:
        nonlocal may_start
        began, second = time.monotonic(), item("second")
        dispatch.hand_over([item("first", checked_at=began), second], {WEBHOOK: settings(1)})
        # The URL is changed after the check of the second has begun, and then there is an event of another repo.
        may_start = False
        dispatch.hand_over([item("other", "other", time.monotonic())], {WEBHOOK: settings(2, resets=1)})
        dispatch.apply_check([second], {"second": Checked(0, b"{}", 1, settings(1))}, began)
        may_start = True
        dispatch.pump()
        assert started(dispatch) == [("first", settings(1).url), ("other", settings(2).url)]
        assert dispatch.queue.webhooks[WEBHOOK].resets == 1

    with_dispatch(work, lambda _: may_start)


def test_request_that_starts_during_a_check_ends_as_usual() -> None:
    """It started with the check before. The later one finds that the repo may not be read any more."""

    async def work(dispatch: Dispatch) -> None:
        replay = Item("replay", WEBHOOK, "repo", 1, 0, Source.REPLAYS, is_replay=True)
        dispatch.queue.load(WEBHOOK, Window(WELL, 0, False, [replay], [], [], []), NOW)
        dispatch.apply_check([replay], {"replay": Checked(0, b"{}", 1, settings())}, time.monotonic())
        assert started(dispatch) == [("replay", settings().url)]
        dispatch.apply_check([replay], {"replay": Checked(0, b"{}", 0, settings())}, time.monotonic())
        dispatch.queue.settle(dispatch.batch.delivery_ids, NOW)
        assert [each.id for each in dispatch.queue.webhooks[WEBHOOK].in_flight.values()] == ["replay"]

    with_dispatch(work, lambda _: True)


def test_one_slow_check_is_repeated_and_a_slow_database_stops_nothing() -> None:
    deliverer = Deliverer(WEBHOOKS, asyncio.Event())

    def valid_for(took: float, count: int) -> float:
        """How long a check that took this long is still valid, in seconds."""
        return deliverer.valid_since(0.0, took, count) + FRESH_SECONDS - took

    assert valid_for(0.01, CHECKED_AT_ONCE) == FRESH_SECONDS - 0.01
    # Fewer deliveries each time, and none may start.
    count = CHECKED_AT_ONCE
    while count > 1:
        assert valid_for(1.0, count) < 0
        count = deliverer.checked_at_once
    assert valid_for(1.0, 1) == pytest.approx(FRESH_SECONDS / 2)
    assert valid_for(0.01, 1) > 0
    assert deliverer.checked_at_once == 2
    assert valid_for(1.0, 1) < 0, "a single pause"
