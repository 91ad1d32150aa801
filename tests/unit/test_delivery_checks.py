"""Slow checks of state and permission: what was read before a change does not undo what was read after it."""

import asyncio
import time
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import pytest

from hubgate.server.clock import SECOND
from hubgate.server.webhooks.delivering import windows_store
from hubgate.server.webhooks.delivering.deliverer import Deliverer
from hubgate.server.webhooks.delivering.dispatch import Dispatch
from hubgate.server.webhooks.delivering.queue import FRESH_SECONDS
from hubgate.server.webhooks.delivering.webhook_queue import Item, Source, Window
from hubgate.server.webhooks.delivering.windows_store import Checked
from hubgate.server.webhooks.health import WELL
from hubgate.server.webhooks.model import DISABLED, ENABLED
from hubgate.server.webhooks.requests.request import Prepared, WebhookSettings, unusable

NOW, WEBHOOK = 1_000_000 * SECOND, "0a"
WEBHOOKS: Any = SimpleNamespace(clock=lambda: NOW, db=None, pace=None)


def settings(version: int = 1, state: str = ENABLED, resets: int = 0) -> WebhookSettings:
    url = f"https://receiver.example/{version}"
    return WebhookSettings(state, version, 0, url, None, None, None, b"", resets, 0, 0, None, None, None)


def item(name: str, repo: str = "repo", checked_at: float = 0.0) -> Item:
    return Item(name, WEBHOOK, repo, 1, 0, Source.LANES, due_at=NOW, checked_at=checked_at)


def record_starts(dispatch: Dispatch, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """The name and the URL of each request that starts."""
    sent: list[tuple[str, str]] = []

    def start(started: Item, prepared: Prepared) -> None:
        sent.append((started.id, prepared.url))

    monkeypatch.setattr(dispatch, "_prepare", unusable)
    monkeypatch.setattr(dispatch.sender, "start", start)
    return sent


def test_slow_check_does_not_bring_back_an_old_url(monkeypatch: pytest.MonkeyPatch) -> None:
    may_start = True
    dispatch = Dispatch(WEBHOOKS, lambda: None, lambda: None, lambda _: may_start)
    sent = record_starts(dispatch, monkeypatch)
    began, second = time.monotonic(), item("second")
    dispatch.hand_over([item("first", checked_at=began), second], {WEBHOOK: settings(1)})
    # The URL is changed after the check of the second has begun, and then there is an event of another repo.
    may_start = False
    dispatch.hand_over([item("other", "other", time.monotonic())], {WEBHOOK: settings(2, resets=1)})
    dispatch.apply_check([second], {"second": Checked(0, b"{}", 1, settings(1))}, began)
    may_start = True
    dispatch.pump()
    assert sent == [("first", settings(1).url), ("other", settings(2).url)]
    assert dispatch.queue.webhooks[WEBHOOK].resets == 1


def test_request_that_starts_during_a_check_ends_as_usual(monkeypatch: pytest.MonkeyPatch) -> None:
    """It started with the check before. The later one finds that the repo may not be read any more."""
    dispatch = Dispatch(WEBHOOKS, lambda: None, lambda: None, lambda _: True)
    sent = record_starts(dispatch, monkeypatch)
    replay = Item("replay", WEBHOOK, "repo", 1, 0, Source.REPLAYS, is_replay=True)
    dispatch.queue.load(WEBHOOK, Window(WELL, 0, False, [replay], [], [], []), NOW)
    dispatch.apply_check([replay], {"replay": Checked(0, b"{}", 1, settings())}, time.monotonic())
    assert sent == [("replay", settings().url)]
    dispatch.apply_check([replay], {"replay": Checked(0, b"{}", 0, settings())}, time.monotonic())
    dispatch.queue.settle(dispatch.batch.delivery_ids, NOW)
    assert dispatch.queue.end(replay).id == WEBHOOK
    assert dispatch.queue.in_flight == 0


@pytest.mark.parametrize("later", [ENABLED, DISABLED])
def test_one_slow_check_is_repeated_and_a_slow_database_stops_nothing(
    later: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    deliverer = Deliverer(WEBHOOKS, asyncio.Event())
    monkeypatch.setattr(deliverer.ownership, "may_send", lambda _: True)
    sent = record_starts(deliverer.dispatch, monkeypatch)
    checks: list[int] = []

    async def slow_check(_: object, ids: Iterable[str]) -> dict[str, Checked]:
        await asyncio.sleep(FRESH_SECONDS + 0.01)
        checks.append(len(sent))
        state = ENABLED if len(checks) == 1 else later
        return {each: Checked(0, b"{}", 1, settings(state=state)) for each in ids}

    async def run() -> None:
        deliverer.dispatch.hand_over([item("one")], {})
        while await deliverer.check_some():
            pass

    monkeypatch.setattr(windows_store, "check", slow_check)
    asyncio.run(run())
    assert checks == [0, 0]
    assert sent == ([("one", settings().url)] if later == ENABLED else [])
