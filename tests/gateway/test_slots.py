"""Forwarded requests beyond the limits wait for a slot, then get 503 with `Retry-After`."""

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import httpx
import pytest
from tests.bed.people import create_token
from tests.bed.processes import until
from tests.bed.upstream import Upstream, UpstreamRequest
from tests.gateway.conftest import Stage

from hubgate.server.resources import Hub


@contextmanager
def one_in_flight(stage: Stage, upstream: Upstream) -> Iterator[tuple[threading.Event, "Future[httpx.Response]"]]:
    """Ada's request, which the service answers once the event is set."""
    may_answer = threading.Event()

    def answer(request: UpstreamRequest) -> None:
        if request.path == "/v1/slow":
            assert may_answer.wait(60)
        request.reply(request.path)

    upstream.answer = answer
    with ThreadPoolExecutor() as pool, stage.client() as client:
        slow = pool.submit(client.get, "/v1/slow")
        try:
            until(lambda: upstream.received)
            yield may_answer, slow
        finally:
            may_answer.set()


def assert_refused(answer: httpx.Response) -> None:
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "10")
    assert answer.json() == {"error": "Too many requests to this service at once. Try again."}


@pytest.mark.one_engine
@pytest.mark.limits(forwarded_per_user=1, forwarding_wait_seconds=0.2)
def test_user_at_the_limit_does_not_block_others(stage: Stage, upstream: Upstream) -> None:
    with one_in_flight(stage, upstream) as (may_answer, slow), stage.client() as client:
        assert_refused(client.get("/v1/models"))
        # The limit is the user's, not the token's.
        with stage.client(create_token(stage.hub, stage.ada, name="second")) as second:
            assert_refused(second.post("/api/jobs/acme", json={}))
        with stage.client(create_token(stage.hub, stage.eve)) as other:
            assert other.get("/v1/models").status_code == 200
        assert [request.path for request in upstream.received] == ["/v1/slow", "/v1/models"]
        may_answer.set()
        assert slow.result(60).json() == "/v1/slow"
        assert client.get("/v1/models").status_code == 200, "the slot is free again"


@pytest.mark.one_engine
@pytest.mark.limits(forwarded_requests=1, forwarding_wait_seconds=0.2)
def test_total_limit_applies_to_everyone(stage: Stage, upstream: Upstream) -> None:
    with one_in_flight(stage, upstream), stage.client(create_token(stage.hub, stage.eve)) as other:
        assert_refused(other.get("/v1/models"))


@pytest.mark.one_engine
@pytest.mark.limits(forwarded_per_user=1)
def test_queued_request_is_forwarded_when_a_slot_is_free(stage: Stage, upstream: Upstream) -> None:
    with (
        one_in_flight(stage, upstream) as (may_answer, slow),
        ThreadPoolExecutor() as pool,
        stage.client() as client,
    ):
        queued = pool.submit(client.get, "/v1/models")
        until(lambda: stage.hub.call(_queue_length) == 1)
        assert len(upstream.received) == 1
        may_answer.set()
        assert (slow.result(60).json(), queued.result(60).json()) == ("/v1/slow", "/v1/models")


@pytest.mark.one_engine
@pytest.mark.limits(forwarded_per_user=1)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_client_that_disconnects_leaves_the_queue(stage: Stage, upstream: Upstream, method: str) -> None:
    with one_in_flight(stage, upstream):
        head = f"{method} /v1/models HTTP/1.1\r\nhost: hub\r\nauthorization: Bearer {stage.token}\r\n\r\n"
        with socket.create_connection(stage.hub.address, timeout=60) as connection:
            connection.sendall(head.encode())
            until(lambda: stage.hub.call(_queue_length) == 1)
        until(lambda: stage.hub.call(_queue_length) == 0)
    assert len(upstream.received) == 1


async def _queue_length(opened: Hub) -> int:
    return len(opened.gateway.slots._queued)
