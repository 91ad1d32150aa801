"""Log lines of requests are written together, a few times a second. None is lost, and none is out of order."""

import json
from pathlib import Path

import pytest
from tests.bed.blocking import run_blocking
from tests.bed.processes import TEST_BUILD, HubProcess, hub_process, until

from hubgate.server.logs import MOST_WAITING, JsonFormatter, LineHandler, RequestLine


def logged_ids(hub: HubProcess) -> list[str]:
    lines = [json.loads(line) for line in hub.errors.splitlines()]
    return [line["request_id"] for line in lines if line["message"] == "request"]


@pytest.mark.parametrize("server", ["granian", "uvicorn"])
def test_a_clean_stop_writes_all_lines_in_order(tmp_path: Path, server: str) -> None:
    sent = [f"request-{number:04}" for number in range(50)]
    with hub_process(tmp_path, "--server", server) as hub:
        with hub.client() as client:
            for request_id in sent:
                client.get("/healthz", headers={"x-request-id": request_id})
        assert hub.stop() == 0
        assert logged_ids(hub) == sent


def test_lines_are_written_while_no_other_requests_are_received(tmp_path: Path) -> None:
    with hub_process(tmp_path) as hub, hub.client() as client:
        client.get("/healthz", headers={"x-request-id": "the-only-one"})
        until(lambda: logged_ids(hub) == ["the-only-one"])


def test_an_error_is_logged_at_once_and_after_the_requests_before_it(tmp_path: Path) -> None:
    with hub_process(tmp_path, program=TEST_BUILD) as hub, hub.client() as client:
        client.get("/healthz", headers={"x-request-id": "earlier-request"})
        client.get("/api/test/broken", headers={"x-request-id": "broken-request"})
        text = hub.errors
        assert 0 < text.index("earlier-request") < text.index("unexpected error")


def test_full_disk_fails_no_request() -> None:
    line = RequestLine("2026-01-01T00:00:00Z", "request-0001", "GET", "/healthz", 200, 1.0, "127.0.0.1", cut=False)

    async def log(handler: LineHandler) -> None:
        for _ in range(4 * MOST_WAITING):
            handler.add_request(line)

    full = Path("/dev/full").open("w", buffering=1)  # noqa: SIM115
    handler = LineHandler(full, JsonFormatter())
    run_blocking(log(handler))
    handler.flush()
    with pytest.raises(OSError, match="No space left"):
        full.close()
