"""`hubgate webhooks listen` forwards every event once and in order, across freezes and kills."""

import contextlib
from collections import defaultdict
from collections.abc import Iterator

import httpx
import pytest
from tests.bed.listeners import ListenProcess, listening
from tests.bed.processes import HubProcess, free_port, until
from tests.bed.webhooks import Receiver, run_receiver
from tests.faults.conftest import Store
from tests.faults.scenario import REPOS, ChangeLoad, Scenario, create_scenario
from tests.faults.watchers import Watchers

pytestmark = pytest.mark.faults

PATH = "/api/settings/webhooks"
# With the full counts, a thousand.
MOST_EVENTS, EVENTS_PER_FAULT, MOST_KILLS = 1000, 20, 20


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with run_receiver() as started:
        yield started


@contextlib.contextmanager
def listen(scenario: Scenario, hub: HubProcess, receiver: Receiver) -> Iterator[ListenProcess]:
    folder = scenario.store.folder
    variables = {
        "HUBGATE_ENDPOINT": hub.url,
        "HUBGATE_TOKEN": scenario.token,
        "XDG_CONFIG_HOME": str(folder / "config"),
    }
    with listening(folder, variables, "--forward", receiver.url) as listener:
        listener.wait_for("✓ Created webhook")
        yield listener


def pulled_ids(client: httpx.Client) -> list[str]:
    """The deliveries of the listener's webhook, in the order of their numbers."""
    (webhook,) = (each for each in client.get(PATH).json() if each.get("pull"))
    ids: list[str] = []
    while events := client.get(f"{PATH}/{webhook['id']}/events", params={"after": len(ids)}).json()["events"]:
        ids += [event["id"] for event in events]
    return ids


def check(receiver: Receiver, ids: list[str]) -> None:
    """All are forwarded once, in the order of their numbers, which is the order of changes in each repo."""
    assert [each.headers["webhook-id"] for each in receiver.received] == ids
    numbers = defaultdict(list)
    for each in receiver.received:
        numbers[each.json["repo"]["name"]].append(int(each.headers["x-hubgate-sequence"]))
    for found in numbers.values():
        assert found == list(range(found[0], found[0] + len(found)))


def test_frozen_listener_forwards_all_events_afterwards(
    store: Store, watchers: Watchers, receiver: Receiver, fault_count: int
) -> None:
    """Two processes deliver while the listener is stopped."""
    scenario = create_scenario(store, watchers)
    times = min(fault_count * EVENTS_PER_FAULT, MOST_EVENTS) // len(REPOS)
    with (
        scenario.hub("--deliver", "off", "--workers", "2") as hub,
        scenario.delivering(),
        scenario.delivering(),
        scenario.client(hub) as ada,
    ):
        scenario.until_shared(2)
        with listen(scenario, hub, receiver) as listener:
            expected = scenario.change_all(ada, *REPOS)
            until(lambda: len(receiver.received) == expected)
            listener.freeze()
            expected += scenario.change_all(ada, *REPOS, times=times)
            until(scenario.is_settled)
            assert len(receiver.received) == len(REPOS)
            listener.resume()
            until(lambda: len(receiver.received) >= expected)
            check(receiver, pulled_ids(ada))
            assert len(receiver.received) == expected


def test_listener_survives_kill_9_of_the_hub(
    store: Store, watchers: Watchers, receiver: Receiver, fault_count: int
) -> None:
    scenario = create_scenario(store, watchers)
    kills = min(fault_count, MOST_KILLS)
    events_per_kill = min(fault_count * EVENTS_PER_FAULT, MOST_EVENTS) // kills
    with contextlib.ExitStack() as stack:
        port, acknowledged = free_port(), 0
        for number in range(kills):
            with scenario.hub("--port", str(port)) as hub:
                if number == 0:
                    stack.enter_context(listen(scenario, hub, receiver))
                load = ChangeLoad(scenario, hub.url).start()
                load.wait_for(events_per_kill)
                scenario.kill_hub(hub)
                acknowledged += load.stop()
        with scenario.hub("--port", str(port)) as hub, scenario.client(hub) as ada:
            until(scenario.is_settled)
            ids = pulled_ids(ada)
            until(lambda: len(receiver.received) >= len(ids))
            check(receiver, ids)
    assert len(ids) == len(scenario.changes()) >= acknowledged
