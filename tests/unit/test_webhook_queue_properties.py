"""The queue in memory against rows: in any sequence of events nothing is lost, doubled or out of order."""

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.webhook_queue_model import RETRY_AFTER, Rows

from hubgate.server.webhooks.model import SIZES, Sizes

REPOS = ["a"] * 6 + ["b", "c", "d", "e"]
# Small windows, so that short sequences use them up.
SMALL = Sizes(lanes=3, per_lane=2, retries=2, replays=2)

STEPS = st.one_of(
    st.tuples(st.just("hand over"), st.sampled_from(REPOS)),
    st.tuples(st.just("add elsewhere"), st.sampled_from(REPOS)),
    st.tuples(st.just("replay"), st.sampled_from(REPOS)),
    st.tuples(st.sampled_from(["start", "start", "store", "read", "wake"]), st.just("")),
    st.tuples(st.sampled_from(["delivered", "failed", "unsent"]), st.integers(0, 7)),
    st.tuples(st.just("time"), st.sampled_from([1, RETRY_AFTER // 2, RETRY_AFTER, 20 * RETRY_AFTER])),
)


@settings(max_examples=400)
@given(st.lists(STEPS, min_size=10, max_size=60), st.booleans(), st.booleans())
def test_nothing_is_lost_doubled_or_out_of_order(
    steps: list[tuple[str, str | int]], ordered: bool, small: bool
) -> None:
    rows = Rows(ordered=ordered, sizes=SMALL if small else SIZES)
    for name, given_value in steps:
        take(rows, name, given_value)
    rows.finish()


def take(rows: Rows, name: str, value: str | int) -> None:
    if name == "hand over":
        rows.hand_over(str(value))
    elif name in ("add elsewhere", "replay"):
        rows.add(str(value), is_replay=name == "replay")
        rows.read_again()
    elif name == "wake":
        rows.read_again()
    elif name == "start":
        rows.start()
    elif name == "store":
        rows.store()
    elif name == "read":
        rows.read()
    elif name == "time":
        rows.pass_time(int(value))
    elif rows.in_flight:
        running = list(rows.in_flight.values())
        rows.end(running[int(value) % len(running)], name)
