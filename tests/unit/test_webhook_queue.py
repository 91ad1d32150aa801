"""The queue of deliveries in memory: lanes, turns, windows of rows, circuit breaker, limits and timers."""

import heapq
from itertools import count

import pytest
from tests.unit.webhook_queue_model import WEBHOOK, WELL_WINDOW, Rows, item, started

from hubgate.server.clock import MINUTE, SECOND
from hubgate.server.webhooks.delivering.queue import MAX_PER_HOST, MAX_TOTAL_IN_FLIGHT, UNLOADED_AFTER, Queue
from hubgate.server.webhooks.delivering.webhook_queue import (
    Item,
    Source,
    WebhookQueue,
    Window,
)
from hubgate.server.webhooks.health import WELL, Health
from hubgate.server.webhooks.model import LANE_BLOCKED_FOR, MAX_IN_FLIGHT, SIZES

NOW = 1_000 * MINUTE


def end(queue: Queue, ended: Item, now: int = NOW, *, stored: bool = True) -> WebhookQueue:
    """A success."""
    webhook = queue.end(ended)
    webhook.free(ended.repo_id)
    queue.place(webhook, now)
    if stored:
        queue.settle([(ended.webhook_id, ended.id)], now)
    return webhook


def loaded(*, replays: int = 0, retries: int = 0, repos: int = 0, each: int = 1) -> Queue:
    queue = Queue()
    window = WELL_WINDOW()
    window.replays += [item(f"p{n}", source=Source.REPLAYS) for n in range(replays)]
    window.retries += [item(f"t{n:03}", source=Source.RETRIES, attempts=1) for n in range(retries)]
    window.untried += [item(f"u{r}.{n}", f"r{r:03}", n) for r in range(repos) for n in range(each)]
    queue.load(WEBHOOK, window, NOW)
    return queue


def test_lane_is_sent_in_order_one_at_a_time() -> None:
    queue = Queue()
    queue.hand_over([item("a1", "a", 1), item("a2", "a", 2), item("b1", "b", 1)], NOW)
    first = started(queue, NOW)
    assert [each.id for each in first] == ["a1", "b1"]
    assert started(queue, NOW) == []
    end(queue, first[0], stored=False)
    assert [each.id for each in started(queue, NOW)] == ["a2"], "also before the result is stored"


def test_failed_attempt_frees_the_lane_unless_the_webhook_is_ordered() -> None:
    for ordered in (False, True):
        queue = Queue()
        queue.hand_over([item("a1", "a", 1), item("a2", "a", 2), item("b1", "b", 1)], NOW)
        webhook = queue.webhooks[WEBHOOK]
        webhook.ordered = ordered
        first, _ = started(queue, NOW)
        assert queue.end(first) is webhook
        if ordered:
            webhook.blockers["a"] = {"a1": NOW}
        webhook.free("a")
        queue.place(webhook, NOW)
        assert [each.id for each in started(queue, NOW)] == ([] if ordered else ["a2"])
        later = NOW + LANE_BLOCKED_FOR
        queue.due(later - 1)
        assert started(queue, later - 1) == []
        queue.due(later)
        assert [each.id for each in started(queue, later)] == (["a2"] if ordered else [])


def test_times_from_before_a_clock_was_set_back_do_not_block() -> None:
    queue = Queue()
    queue.hand_over([item("a1", "a", 1, due_at=NOW + 50 * MINUTE)], NOW)
    webhook = queue.webhooks[WEBHOOK]
    webhook.ordered, webhook.blockers = True, {"a": {"x": NOW + 50 * MINUTE}}
    webhook.health = Health(10, NOW + 50 * MINUTE, NOW, None, NOW)
    queue.place(webhook, NOW)
    assert [each.id for each in started(queue, NOW)] == ["a1"]


def test_replays_retries_and_lanes_take_turns() -> None:
    queue = loaded(replays=4, retries=4, repos=4)
    assert [each.source for each in started(queue, NOW)] == [*Source, *Source, Source.REPLAYS, Source.RETRIES]


def test_test_is_started_first() -> None:
    queue, window = Queue(), WELL_WINDOW()
    window.replays += [item("p", source=Source.REPLAYS), item("test", source=Source.REPLAYS, is_test=True)]
    window.untried.append(item("u", "a", 1))
    queue.load(WEBHOOK, window, NOW)
    assert [each.id for each in started(queue, NOW)] == ["test", "u", "p"]


def test_webhooks_take_turns() -> None:
    queue = Queue()
    queue.hand_over([item(f"a{n}", f"r{n}", 1, webhook_id="a" * 24) for n in range(6)], NOW)
    queue.hand_over([item(f"b{n}", f"r{n}", 1, webhook_id="b" * 24) for n in range(2)], NOW)
    assert [each.id for each in started(queue, NOW)][:4] == ["a0", "b0", "a1", "b1"]


def test_at_most_eight_requests_of_a_webhook() -> None:
    queue = loaded(repos=20)
    first = started(queue, NOW)
    assert len(first) == MAX_IN_FLIGHT
    end(queue, first[0])
    end(queue, first[1])
    assert len(started(queue, NOW)) == 2


def test_used_up_lane_is_read_again() -> None:
    queue = loaded(repos=1, each=SIZES.per_lane)
    queue.hand_over([item("more", "r000", 100)], NOW)
    for n in range(SIZES.per_lane):
        (one,) = started(queue, NOW)
        assert one.id == f"u0.{n}", "not the one that was handed over behind rows that were not read"
        assert not queue.unread
        end(queue, one, stored=False)
    assert not queue.unread, "before results are stored, reading finds the same rows"
    queue.settle([(WEBHOOK, f"u0.{n}") for n in range(SIZES.per_lane)], NOW)
    assert queue.take_unread(10) == {WEBHOOK: ""}


def test_rows_that_are_not_settled_are_not_queued_twice() -> None:
    queue = Queue()
    queue.hand_over([item("a1", "a", 1), item("a2", "a", 2)], NOW)
    (first,) = started(queue, NOW)
    window = WELL_WINDOW()
    window.untried += [item("a1", "a", 1), item("a2", "a", 2)]
    queue.load(WEBHOOK, window, NOW)
    assert started(queue, NOW) == [], "a1 is in flight"
    end(queue, first, stored=False)
    window = WELL_WINDOW()
    window.untried += [item("a1", "a", 1), item("a2", "a", 2)]
    queue.load(WEBHOOK, window, NOW)
    assert [each.id for each in started(queue, NOW)] == ["a2"], "a1 is delivered, though not stored yet"


def test_retry_that_is_not_stored_survives_a_read_and_waits_for_its_store() -> None:
    queue = Queue()
    queue.hand_over([item("a1", "a", 1)], NOW)
    (first,) = started(queue, NOW)
    webhook = queue.end(first)
    first.attempts, first.due_at = 1, NOW
    webhook.add_retry(first)
    webhook.free("a")
    window = WELL_WINDOW()
    window.untried.append(item("a1", "a", 1))
    queue.load(WEBHOOK, window, NOW)
    assert started(queue, NOW) == []
    queue.settle([(WEBHOOK, "a1")], NOW)
    assert started(queue, NOW) == [first]


@pytest.mark.parametrize("repos", [SIZES.lanes + 1, 2 * SIZES.lanes, 3 * SIZES.lanes + 7])
def test_every_repo_is_served(repos: int) -> None:
    """More than fit into one window: the next read continues behind the last repo."""
    rows = Rows()
    for number in range(3 * repos):
        rows.add(f"{number % repos:03}", NOW)
    served: list[str] = []
    rows.read_again()
    for _ in range(3 * repos):
        rows.read()
        for one in rows.start():
            served.append(one.repo_id)
            rows.end(one, "delivered")
        rows.store()
    assert len(served) == 3 * repos
    # Nobody is served twice while a window of others waits for its first.
    assert len(set(served[: SIZES.per_lane * repos])) == repos


def test_delivery_handed_over_beyond_the_window_is_read_later() -> None:
    queue = loaded(repos=SIZES.lanes)
    queue.hand_over([item("new", "zzz", 1)], NOW)
    sent: list[str] = []
    while found := started(queue, NOW):
        for one in found:
            sent.append(one.id)
            end(queue, one)
    assert len(sent) == SIZES.lanes
    assert queue.take_unread(10) == {WEBHOOK: "r063"}, "behind the last repo that was read"


@pytest.mark.parametrize("kind", ["retries", "replays"])
def test_more_retries_and_replays_than_the_window_holds_are_read_again(kind: str) -> None:
    size = {"retries": SIZES.retries, "replays": SIZES.replays}[kind]
    queue = loaded(**{kind: size})
    sent = 0
    while found := started(queue, NOW):
        for one in found:
            end(queue, one)
            sent += 1
    assert sent == size
    queue.due(NOW)
    assert queue.take_unread(10) == {WEBHOOK: ""}


def test_handed_over_to_a_webhook_that_must_be_read_is_left_to_the_read() -> None:
    queue = Queue()
    queue.read_again(WEBHOOK)
    queue.hand_over([item("new", "a", 9)], NOW)
    assert started(queue, NOW) == []
    assert queue.take_unread(10) == {WEBHOOK: ""}
    queue.hand_over([item("b1", "b", 1)], NOW)
    queue.read_again(WEBHOOK)
    queue.hand_over([item("new", "a", 9)], NOW)
    assert [one.id for one in started(queue, NOW)] == ["b1"], "also while others are in memory"


def test_open_breaker_starts_nothing_and_then_one_probe() -> None:
    queue = loaded(repos=4)
    queue.webhooks[WEBHOOK].health = Health(10, NOW + 3 * SECOND, NOW, None, NOW)
    assert started(queue, NOW) == []
    assert queue.next_time() == NOW + 3 * SECOND
    queue.due(NOW + 3 * SECOND)
    (probe,) = started(queue, NOW + 3 * SECOND)
    queue.webhooks[WEBHOOK].health = WELL
    end(queue, probe, NOW + 3 * SECOND)
    assert len(started(queue, NOW + 3 * SECOND)) == 3


def test_webhook_that_waits_long_leaves_memory_and_is_read_in_time() -> None:
    queue, window = Queue(), WELL_WINDOW()
    due_at = NOW + UNLOADED_AFTER + 1
    window.retries.append(item("t", source=Source.RETRIES, attempts=1, due_at=due_at))
    queue.load(WEBHOOK, window, NOW)
    assert (queue.webhooks, queue.unloaded, queue.next_time()) == ({}, {WEBHOOK: due_at}, due_at)
    queue.due(due_at - 1)
    assert not queue.unread
    queue.due(due_at)
    assert queue.take_unread(10) == {WEBHOOK: ""}


def test_delivery_for_an_unloaded_webhook_does_not_wait_for_its_retry() -> None:
    """A new delivery of another repo need not wait until an earlier one is tried again."""
    queue, window = Queue(), WELL_WINDOW()
    window.retries.append(item("t", source=Source.RETRIES, attempts=1, due_at=NOW + 60 * MINUTE))
    queue.load(WEBHOOK, window, NOW)
    queue.hand_over([item("new", "a", 1)], NOW)
    assert started(queue, NOW) == [], "rows that are not in memory may come before it"
    assert queue.take_unread(10) == {WEBHOOK: ""}


def test_webhook_without_deliveries_leaves_memory() -> None:
    queue = Queue()
    queue.hand_over([item("a1", "a", 1)], NOW)
    (one,) = started(queue, NOW)
    end(queue, one, stored=False)
    assert WEBHOOK in queue.webhooks
    queue.settle([(WEBHOOK, "a1")], NOW)
    started(queue, NOW)
    assert queue.webhooks == {}
    assert queue.in_flight == 0


def test_requests_to_one_host_are_limited() -> None:
    queue = Queue()
    numbers = count()
    for number in range(1, 21):
        webhook_id = f"{number:024x}"
        queue.hand_over([item(f"{next(numbers)}", f"r{n}", 1, webhook_id=webhook_id) for n in range(8)], NOW)
        queue.webhooks[webhook_id].host = "slow.example"
    queue.hand_over([item("other", "a", 1)], NOW)
    queue.webhooks[WEBHOOK].host = "quick.example"
    first = started(queue, NOW)
    assert len([one for one in first if one.host == "slow.example"]) == MAX_PER_HOST
    assert "other" in {one.id for one in first}, "others do not wait"
    ended = end(queue, next(one for one in first if one.host == "slow.example"))
    queue.release_host("slow.example", NOW)
    assert [one.host for one in started(queue, NOW)] == [ended.host]


def test_requests_are_limited_in_total() -> None:
    queue = Queue()
    for number in range(MAX_TOTAL_IN_FLIGHT):
        webhook_id = f"{number:024x}"
        queue.hand_over([item(f"{number}.{n}", f"r{n}", 1, webhook_id=webhook_id) for n in range(2)], NOW)
        queue.webhooks[webhook_id].host = f"{number}"
    first = started(queue, NOW)
    assert len(first) == queue.in_flight == MAX_TOTAL_IN_FLIGHT
    assert len({one.webhook_id for one in first}) > MAX_TOTAL_IN_FLIGHT // 2, "each has some"
    end(queue, first[0])
    assert len(started(queue, NOW)) == 1


def test_check_that_is_too_old_is_repeated() -> None:
    queue = Queue()
    queue.hand_over([item("a1", "a", 1)], NOW)
    assert queue.next_to_start(NOW, moment=100.0) is None
    (checked,) = queue.to_check(10, NOW, moment=100.0)
    checked.checked_at = 100.0
    queue.checked([checked], NOW)
    assert queue.next_to_start(NOW, moment=100.2) is None, "state and permission may have changed"
    assert queue.to_check(10, NOW, moment=100.2) == [checked]


def test_delivery_that_was_not_sent_is_started_later_in_its_place() -> None:
    queue = Queue()
    queue.hand_over([item("a1", "a", 1), item("a2", "a", 2)], NOW)
    (first,) = started(queue, NOW)
    queue.end(first).put_back(first, NOW + SECOND)
    queue.place(queue.webhooks[WEBHOOK], NOW)
    assert started(queue, NOW) == []
    queue.due(NOW + SECOND)
    assert started(queue, NOW + SECOND) == [first]


def test_dropped_webhook_keeps_what_is_in_flight() -> None:
    queue = loaded(repos=2, each=2)
    first, second = started(queue, NOW)
    queue.load(WEBHOOK, None, NOW)
    assert started(queue, NOW) == []
    end(queue, first)
    end(queue, second)
    assert (queue.webhooks, queue.in_flight) == ({}, 0)


def test_lane_stays_busy_while_its_webhook_is_dropped() -> None:
    """Disabled and enabled again during a request: what comes then waits for the end of that request."""
    queue = Queue()
    queue.hand_over([item("a1", "a", 1)], NOW)
    (first,) = started(queue, NOW)
    queue.drop(WEBHOOK)
    queue.hand_over([item("a2", "a", 2)], NOW)
    assert started(queue, NOW) == []
    end(queue, first)
    assert [one.id for one in started(queue, NOW)] == ["a2"]


def test_forgotten_shards_leave_nothing() -> None:
    queue = loaded(repos=2)
    queue.read_again("0" * 22 + "07")
    queue.forget(set(range(256)))
    assert (queue.webhooks, queue.unread, queue.unloaded) == ({}, {}, {})
    assert started(queue, NOW) == []


def test_retries_are_started_in_the_order_of_their_due_times() -> None:
    window = Window(WELL, 0, False, [], [], [], [])
    window.retries += [item(f"{n}", source=Source.RETRIES, attempts=1, due_at=NOW - n) for n in range(5)]
    queue = Queue()
    queue.load(WEBHOOK, window, NOW)
    assert queue.webhooks[WEBHOOK].retries[0] == heapq.nsmallest(1, queue.webhooks[WEBHOOK].retries)[0]
    assert [one.id for one in started(queue, NOW)] == ["4", "3", "2", "1", "0"]


def test_new_delivery_does_not_wait_for_a_replay_or_test_of_the_same_repo() -> None:
    queue = Queue()
    window = WELL_WINDOW()
    window.replays.append(item("replay", "a", 1, source=Source.REPLAYS))
    queue.load(WEBHOOK, window, NOW)
    (replay,) = started(queue, NOW)
    queue.hand_over([item("new", "a", 2)], NOW)
    new = started(queue, NOW)
    end(queue, replay)
    assert [each.id for each in new + started(queue, NOW)] == ["new"]


def test_webhooks_in_memory_are_read_even_behind_many_for_which_there_is_no_room() -> None:
    """Those in memory leave it only after they have been read: otherwise nothing would ever be read again."""
    queue, limit = Queue(max_read=3), 2
    queue.hand_over([item(f"{n}", webhook_id=f"{n:024x}") for n in range(3)], NOW)
    in_flight = started(queue, NOW)
    for n in (*range(10, 15), *range(3)):
        queue.read_again(f"{n:024x}")
    for each in in_flight:
        end(queue, each)
    read: list[str] = []
    for _ in range(20):
        for webhook_id in queue.take_unread(limit):
            read.append(webhook_id)
            queue.load(webhook_id, WELL_WINDOW(), NOW)
    assert sorted(read) == [f"{n:024x}" for n in (*range(3), *range(10, 15))]
    assert not queue.webhooks
