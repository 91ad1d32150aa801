"""Which requests are retried, and after how long."""

from pathlib import Path
from typing import Any

import pytest
from tests.bed.hostile import CLIENT_TYPES, call_with, http_response, json_response, reset, run_hostile_server
from tests.bed.sleepless_drivers import without_sleeping
from tests.client.test_hostile_answers import ME, WEBHOOK, make, who

from hubgate import Hub
from hubgate.client import errors, retry_policy
from hubgate.client.wire import Response

faces = pytest.mark.parametrize("face", CLIENT_TYPES)
MADE = json_response(200, {"webhook": WEBHOOK})
NOW = json_response(503, {"error": "Busy."}, retry_after="0")


@faces
def test_reads_are_retried(face: Any, tmp_path: Path) -> None:
    with run_hostile_server(
        reset, NOW, http_response(502), json_response(429, {}, retry_after="0"), json_response(200, ME)
    ) as server:
        assert call_with(face, server.url, who, tmp_path, retries=4).name == "ada"
        assert len(server.seen) == 5


def test_retries_are_limited(tmp_path: Path) -> None:
    with run_hostile_server(NOW) as server:
        with pytest.raises(errors.HubFailure, match="Busy"):
            call_with(CLIENT_TYPES[0], server.url, who, tmp_path, retries=2)
        assert len(server.seen) == 3


@pytest.mark.parametrize("first", [NOW, json_response(429, {"error": "Later."}, retry_after="0")])
def test_change_is_retried_if_the_hub_did_nothing(first: bytes, tmp_path: Path) -> None:
    with run_hostile_server(first, MADE) as server:
        assert call_with(CLIENT_TYPES[0], server.url, make, tmp_path, retries=1).id == "w1"
        assert len(server.seen) == 2


@pytest.mark.parametrize(
    ("first", "raised"),
    [
        (reset, errors.ConnectionLost),
        (http_response(502), errors.HubFailure),
        (http_response(503), errors.HubFailure),
        (json_response(503, {}, retry_after="0", x_error_code="OutcomeUnknown"), errors.HubFailure),
    ],
)
def test_change_with_unknown_outcome_is_not_retried(first: Any, raised: type[Exception], tmp_path: Path) -> None:
    with run_hostile_server(first, MADE) as server:
        with pytest.raises(raised):
            call_with(CLIENT_TYPES[0], server.url, make, tmp_path, retries=3)
        assert len(server.seen) == 1


def test_retried_delete_treats_404_as_success(tmp_path: Path) -> None:
    with run_hostile_server(reset, json_response(404, {"error": "Webhook not found."})) as server:
        assert call_with(CLIENT_TYPES[0], server.url, lambda hub: hub.delete_webhook("w1"), tmp_path, retries=1) is None
    with (
        run_hostile_server(json_response(404, {"error": "Webhook not found."})) as server,
        pytest.raises(errors.NotFound),
    ):
        call_with(CLIENT_TYPES[0], server.url, lambda hub: hub.delete_webhook("w1"), tmp_path, retries=1)


def test_hub_that_starts_during_retries_is_reached(tmp_path: Path) -> None:
    """Connection refused is safe for everything, for nothing was sent."""
    with run_hostile_server(MADE) as server, run_hostile_server(b"") as gone:
        gone.close()
        waits: list[float] = []
        hub = without_sleeping(Hub(gone.url, "hf_x", retries=3, config_folder=tmp_path), waits.append)
        with hub, pytest.raises(errors.Unreachable):
            make(hub)
        assert len(waits) == 3
        assert server.seen == []


def test_waits_grow_and_follow_retry_after() -> None:
    def none() -> float:
        return 0.0

    assert [retry_policy.retry_delay(tries, None, none) for tries in (1, 2, 3)] == [0.25, 0.5, 1.0]
    assert retry_policy.retry_delay(20, None, lambda: 1.0) == 8.0
    assert retry_policy.retry_delay(1, 7.0, none) == 7.0
    assert retry_policy.retry_delay(1, 61.0, none) is None


def test_retry_after_in_both_forms() -> None:
    assert retry_policy.retry_after("120", 0) == 120
    assert retry_policy.retry_after("Thu, 01 Jan 1970 00:01:00 GMT", 10) == 50
    assert retry_policy.retry_after("Thu, 01 Jan 1970 00:00:00 GMT", 10) == 0
    assert retry_policy.retry_after("soon", 0) is None
    assert retry_policy.retry_after(None, 0) is None


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 412, 422])
def test_rejections_are_not_retried(status: int) -> None:
    assert not retry_policy.may_repeat_after_response(Response(status, {}, ""), repeatable=True)
