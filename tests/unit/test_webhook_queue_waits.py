"""The queue of deliveries in memory, without a database: the test says what the rows are."""

from hubgate.server.clock import HOUR, SECOND
from hubgate.server.webhooks.delivering.queue import MAX_READ, Queue
from hubgate.server.webhooks.delivering.webhook_queue import Item, Source, Window
from hubgate.server.webhooks.health import WELL, Health
from hubgate.server.webhooks.model import BREAKER_FIRST, SIZES

NOW = 1_000 * HOUR
WEBHOOK = "0a"


def item(name: str, webhook_id: str = WEBHOOK, source: Source = Source.LANES, due_at: int = NOW) -> Item:
    attempts = 1 if source is Source.RETRIES else 0
    return Item(name, webhook_id, f"repo of {name}", 1, attempts, source, due_at=due_at)


def window(*items: Item, health: Health = WELL) -> Window:
    by_source = {source: [each for each in items if each.source is source] for source in Source}
    return Window(health, 0, False, by_source[Source.REPLAYS], by_source[Source.RETRIES], by_source[Source.LANES], [])


def start(queue: Queue, now: int = NOW, moment: float = 1.0) -> list[Item]:
    """Check and start all that may start."""
    started = []
    while True:
        while (next_one := queue.next_to_start(now, moment)) is not None:
            started.append(next_one)
        checked = queue.to_check(1000, now, moment)
        if not checked:
            return started
        for each in checked:
            each.checked_at = moment
        queue.checked(checked, now)


def deliver(queue: Queue, items: list[Item], now: int = NOW) -> None:
    """End requests with a success, and store the results."""
    for each in items:
        webhook = queue.end(each)
        if each.source is Source.LANES:
            webhook.free(each.repo_id)
        queue.place(webhook, now)
    queue.settle([(each.webhook_id, each.id) for each in items], now)


def test_new_delivery_does_not_wait_for_a_retry_that_is_due_later() -> None:
    queue = Queue()
    queue.load(WEBHOOK, window(item("old", source=Source.RETRIES, due_at=NOW + HOUR)), NOW)
    assert WEBHOOK in queue.unloaded
    queue.hand_over([item("new")], NOW)
    assert WEBHOOK in queue.take_unread(10), "its rows are read, and the new one is sent"


def test_webhook_that_leaves_memory_often_has_one_timer() -> None:
    queue = Queue()
    for _ in range(100):
        queue.load(WEBHOOK, window(item("old", source=Source.RETRIES, due_at=NOW + HOUR)), NOW)
        queue.read_again(WEBHOOK)
        queue.take_unread(10)
    assert len(queue._timers) == 1


def test_all_retries_that_are_due_are_read() -> None:
    queue = Queue()
    queue.load(WEBHOOK, window(*(item(f"{n}", source=Source.RETRIES) for n in range(SIZES.retries))), NOW)
    sent = 0
    while started := start(queue):
        sent += len(started)
        deliver(queue, started)
    assert sent == SIZES.retries
    assert WEBHOOK in queue.take_unread(10)


def test_retries_beyond_the_window_leave_memory() -> None:
    """A receiver that fails often, but not always, has a growing number of retries."""
    queue = Queue()
    for n in range(4 * SIZES.retries):
        queue.hand_over([item(f"{n}")], NOW)
        if WEBHOOK in queue.unread:
            return
        (started,) = start(queue)
        webhook = queue.end(started)
        webhook.free(started.repo_id)
        started.due_at = NOW + SECOND
        webhook.add_retry(started)
        queue.place(webhook, NOW)
        queue.settle([(WEBHOOK, started.id)], NOW)
    raise AssertionError("its rows are never read again")


def test_webhooks_beyond_the_room_in_memory_take_turns() -> None:
    """Each has more deliveries than are read at once."""
    queue, names = Queue(), [f"{n:06x}" for n in range(MAX_READ + 500)]
    for name in names:
        queue.read_again(name)
    read: set[str] = set()
    for _ in range(100):
        for name in (found := queue.take_unread(128)):
            lane = [Item(f"{name} {n}", name, "repo", n, 0, Source.LANES, due_at=NOW) for n in range(SIZES.per_lane)]
            queue.load(name, window(*lane), NOW)
        read |= found.keys()
        while started := start(queue):
            deliver(queue, started)
        if len(read) == len(names):
            return
    raise AssertionError(f"{len(names) - len(read)} webhooks never got a turn")


def test_delivery_whose_turn_it_is_is_checked_first() -> None:
    """Even if each check takes so long that the one before is no longer recent."""
    queue = Queue()
    waiting = [item(f"replay {n}", source=Source.REPLAYS) for n in range(20)]
    waiting += [item(f"retry {n}", source=Source.RETRIES) for n in range(20)]
    queue.load(WEBHOOK, window(*waiting, item("new")), NOW)
    queue.webhooks[WEBHOOK].turn = Source.LANES
    moment = 1.0
    for _ in range(10):
        moment += 0.08
        checked = queue.to_check(100, NOW, moment)
        for each in checked:
            each.checked_at = moment
        queue.checked(checked, NOW)
        if queue.next_to_start(NOW, moment + 0.08) is not None:
            return
    raise AssertionError("nothing ever starts")


def test_clock_that_is_set_back_during_a_check_loses_no_retry() -> None:
    queue = Queue()
    queue.load(WEBHOOK, window(item("retry", source=Source.RETRIES)), NOW)
    assert queue.next_to_start(NOW, 1.0) is None, "not checked yet"
    assert queue.to_check(10, NOW - SECOND, 1.0) == [], "not due"
    queue.due(NOW)
    assert len(start(queue)) == 1


def test_clock_that_is_set_back_does_not_keep_a_breaker_open() -> None:
    queue = Queue()
    queue.due(NOW)
    queue.load(WEBHOOK, window(item("new"), health=Health(10, NOW + BREAKER_FIRST, NOW, None, NOW)), NOW)
    assert WEBHOOK in queue.unloaded
    queue.due(NOW - HOUR)
    assert WEBHOOK in queue.take_unread(10)


def test_hosts_without_requests_are_forgotten() -> None:
    queue = Queue()
    queue.hand_over([item("new")], NOW)
    queue.webhooks[WEBHOOK].host = "one.example"
    deliver(queue, start(queue))
    assert not queue._at_host
