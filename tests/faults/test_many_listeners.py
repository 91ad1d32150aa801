"""A hub serves a thousand listeners at once, with little memory for each."""

import httpx
import pytest
from tests.bed.blocking import run_blocking
from tests.bed.many_listeners import ManyListeners
from tests.bed.memory import resident_memory
from tests.bed.plugin import SMALL_FAULT_COUNT
from tests.bed.processes import HubProcess, hub_process
from tests.faults.conftest import Store
from tests.faults.scenario import Scenario, create_scenario
from tests.faults.watchers import Watchers

pytestmark = pytest.mark.faults

PATH = "/api/settings/webhooks"
MIB = 1024 * 1024
SMALL, FULL = 200, 1000
MEMORY_EACH = 150 * MIB // FULL


def create_pull_webhook(client: httpx.Client) -> str:
    body = {"pull": True, "watched": [{"type": "user", "name": "ada"}]}
    webhook_id: str = client.post(PATH, json=body).json()["webhook"]["id"]
    return webhook_id


@pytest.mark.parametrize("server", ["granian", "uvicorn"])
def test_event_reaches_many_listeners(store: Store, watchers: Watchers, fault_count: int, server: str) -> None:
    scenario = create_scenario(store, watchers)
    count = SMALL if fault_count <= SMALL_FAULT_COUNT else FULL
    with hub_process(store.folder, *scenario.flags, "--server", server, new=True) as hub, scenario.client(hub) as ada:
        path = f"{PATH}/{create_pull_webhook(ada)}/events"
        scenario.change_all(ada, "ada/one", times=10)
        scenario.until_settled()
        before = resident_memory(hub.process.pid)
        after, latencies = run_blocking(_listen(scenario, hub, path, count))
    assert len(latencies) == count
    assert after - before < count * MEMORY_EACH, f"{(after - before) / MIB:.0f} MiB"


async def _listen(scenario: Scenario, hub: HubProcess, path: str, count: int) -> tuple[int, list[float]]:
    """Memory with this many listeners, and when each got an event after the response to the change."""
    listeners = ManyListeners(hub.url, f"{path}?after=latest", scenario.token)
    headers = {"authorization": f"Bearer {scenario.token}"}
    async with httpx.AsyncClient(base_url=hub.url, headers=headers, timeout=120) as client:

        async def change(number: int) -> None:
            body = {"discussionsDisabled": number % 2 == 0}
            assert (await client.put("/api/models/ada/two/settings", json=body)).status_code == 200

        try:
            await listeners.open(count)
            for number in range(3):
                latencies = await listeners.latencies(11 + number, lambda number=number: change(number))  # type: ignore[misc]
            return resident_memory(hub.process.pid), latencies
        finally:
            await listeners.close()
