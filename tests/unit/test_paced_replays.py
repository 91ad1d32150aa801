"""The rate of a replay of many deliveries, in the queue in memory."""

from hubgate.server.clock import HOUR, SECOND
from hubgate.server.webhooks.delivering.queue import Queue
from hubgate.server.webhooks.delivering.webhook_queue import Item, Source, Window
from hubgate.server.webhooks.health import WELL
from hubgate.server.webhooks.insight.throughput import Throughput
from hubgate.server.webhooks.model import SIZES

NOW, WEBHOOK = 1_000 * HOUR, "0a"
INTERVAL = SECOND // 4


def replay(name: str, *, is_paced: bool = True, is_test: bool = False, attempts: int = 0) -> Item:
    source = Source.RETRIES if attempts else Source.REPLAYS
    return Item(name, WEBHOOK, name, 0, attempts, source, is_replay=True, is_test=is_test, is_paced=is_paced)


def loaded(*replays: Item, retries: tuple[Item, ...] = (), untried: tuple[Item, ...] = (), now: int = NOW) -> Queue:
    queue = Queue()
    queue.load(WEBHOOK, Window(WELL, 0, False, list(replays), list(retries), list(untried), [], INTERVAL), now)
    return queue


def started(queue: Queue, now: int) -> list[str]:
    """Check and start everything that may start now."""
    found: list[str] = []
    queue.due(now)
    while True:
        while one := queue.next_to_start(now, 1.0):
            found.append(one.id)
        checked = queue.to_check(100, now, 1.0)
        if not checked:
            return found
        for each in checked:
            each.checked_at = 1.0
        queue.checked(checked, now)


def test_requests_of_a_replay_start_one_interval_apart() -> None:
    queue = loaded(replay("a"), replay("b"), replay("c"))
    # Another process may have sent just before.
    assert started(queue, NOW) == []
    assert queue.next_time() == NOW + INTERVAL
    assert started(queue, NOW + INTERVAL) == ["a"]
    assert started(queue, NOW + 2 * INTERVAL - 1) == []
    # A late start is not made up for.
    assert started(queue, NOW + 5 * INTERVAL) == ["b"]
    assert started(queue, NOW + 6 * INTERVAL - 1) == []
    assert queue.next_time() == NOW + 6 * INTERVAL
    assert started(queue, NOW + 6 * INTERVAL) == ["c"]


def test_others_do_not_wait_for_a_replay() -> None:
    new = Item("new", WEBHOOK, "repo", 1, 0, Source.LANES)
    queue = loaded(
        replay("paced"), replay("single", is_paced=False), replay("test", is_paced=False, is_test=True), untried=(new,)
    )
    assert set(started(queue, NOW)) == {"test", "single", "new"}


def test_retries_of_a_replay_keep_to_its_rate() -> None:
    queue = loaded(replay("first"), retries=(replay("retry", attempts=1), replay("second retry", attempts=1)))
    assert started(queue, NOW) == []
    order = []
    for number in range(1, 4):
        assert queue.next_time() == NOW + number * INTERVAL
        assert started(queue, NOW + number * INTERVAL - 1) == []
        (one,) = started(queue, NOW + number * INTERVAL)
        order.append(one)
    assert set(order) == {"first", "retry", "second retry"}
    assert order[1] == "first" or order[0] == "first", "they take turns"


def test_other_retries_do_not_wait_for_those_of_a_replay() -> None:
    paced = [replay(f"paced-{number}", attempts=1) for number in range(3)]
    other = Item("other", WEBHOOK, "repo", 1, 1, Source.RETRIES, due_at=NOW - 1)
    single = replay("single", is_paced=False, attempts=1)
    queue = loaded(retries=(*paced, other, single))
    assert set(started(queue, NOW)) == {"other", "single"}


def test_retries_that_wait_for_the_rate_are_not_read_again() -> None:
    queue = Queue()
    retries = [replay(f"{number:02}", attempts=1) for number in range(SIZES.retries)]
    queue.load(WEBHOOK, Window(WELL, 0, False, [], retries, [], [], INTERVAL), NOW)
    assert started(queue, NOW) == []
    webhook = queue.webhooks[WEBHOOK]
    assert not webhook.is_used_up(NOW)
    # In memory are only retries that are due later than others.
    webhook.retries = [(NOW + HOUR, "00", retries[0])]
    assert webhook.is_used_up(NOW)


def test_rate_survives_a_read_of_the_rows_and_a_clock_set_back() -> None:
    queue = loaded(replay("a"), replay("b"))
    assert started(queue, NOW + INTERVAL) == ["a"]
    window = Window(WELL, 0, False, [replay("b")], [], [], [], INTERVAL)
    queue.load(WEBHOOK, window, NOW + INTERVAL)
    assert started(queue, NOW + INTERVAL) == []
    assert started(queue, NOW - HOUR) == ["b"]


def test_throughput_counts_the_last_minute() -> None:
    throughput = Throughput()
    for moment in (0.1, 0.9, 30.0):
        throughput.add(5, moment)
    assert [throughput.last_minute(moment) for moment in (30.0, 59.0, 61.0, 100.0)] == [15, 15, 5, 0]
