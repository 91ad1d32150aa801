"""The queue in memory when rows must be read first, when shards leave, and when the clock is set back."""

from hubgate.server.clock import HOUR, SECOND
from hubgate.server.webhooks.delivering.queue import Queue
from hubgate.server.webhooks.delivering.webhook_queue import Item, Source, Window
from hubgate.server.webhooks.health import WELL
from hubgate.server.webhooks.model import LONGEST_WAIT, SIZES

NOW = 1000 * HOUR
WEBHOOK = f"{0xAB:024x}"


def item(seq: int, *, attempts: int = 0, due_at: int = NOW) -> Item:
    source = Source.RETRIES if attempts else Source.LANES
    return Item(f"d{seq}", WEBHOOK, "repo", seq, attempts, source, due_at=due_at, checked_at=100.0)


def window(*, untried: list[Item] | None = None, retries: list[Item] | None = None) -> Window:
    return Window(WELL, 0, False, [], retries or [], untried or [], [])


def started(queue: Queue, now: int = NOW) -> list[str]:
    """Start all deliveries that may start, one after the other."""
    found = []
    while next_item := queue.next_to_start(now, 100.0):
        found.append(next_item.id)
        queue.end(next_item).free(next_item.repo_id)
        queue.settle([(WEBHOOK, next_item.id)], now)
    return found


def test_later_delivery_waits_until_earlier_ones_are_read() -> None:
    """Another process has stored the second delivery, and this one has the third in memory."""
    queue = Queue()
    queue.hand_over([item(1)], NOW)
    queue.read_again(WEBHOOK)
    queue.hand_over([item(3)], NOW)
    assert started(queue) == ["d1"]
    assert list(queue.take_unread(10)) == [WEBHOOK]
    queue.load(WEBHOOK, window(untried=[item(2), item(3)]), NOW)
    assert started(queue) == ["d2", "d3"]


def test_released_webhook_is_not_read_again() -> None:
    """Although more of its deliveries are stored, and it still is in the ring."""
    queue = Queue()
    queue.load(WEBHOOK, window(untried=[item(seq) for seq in range(SIZES.per_lane)]), NOW)
    queue.leave({0xAB})
    queue.webhooks[WEBHOOK].lanes.clear()
    queue.webhooks[WEBHOOK].free_lanes.clear()
    queue.webhooks[WEBHOOK].more_lanes = True
    queue.forget({0xAB})
    assert started(queue) == []
    assert not queue.unread
    assert not queue.webhooks


def test_retry_that_no_clock_can_have_asked_for_is_due() -> None:
    queue = Queue()
    queue.load(WEBHOOK, window(retries=[item(1, attempts=1, due_at=NOW + 2 * LONGEST_WAIT + SECOND)]), NOW)
    assert started(queue) == ["d1"]
    queue.load(WEBHOOK, window(retries=[item(2, attempts=1, due_at=NOW + LONGEST_WAIT)]), NOW)
    assert started(queue) == []


def test_unloaded_webhooks_are_read_again_after_the_clock_was_set_back() -> None:
    queue = Queue()
    queue.due(NOW)
    queue.load(WEBHOOK, window(retries=[item(1, attempts=1, due_at=NOW + HOUR)]), NOW)
    assert list(queue.unloaded) == [WEBHOOK]
    queue.due(NOW + SECOND)
    assert not queue.unread
    queue.due(NOW - HOUR)
    assert list(queue.unread) == [WEBHOOK]
