import pytest
from tests.bed.running_hub import RunningHub

pytestmark = pytest.mark.one_engine


def test_hub_is_alive_and_ready(hub: RunningHub) -> None:
    with hub.client() as client:
        assert client.get("/healthz").json() == {"status": "ok"}
        assert client.get("/readyz").json() == {"status": "ready"}
