"""O44: a request that waits or streams for long ends soon after its caller has lost the permission."""

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from tests.bed.people import api, create_organization, create_token, create_user
from tests.bed.processes import until
from tests.bed.upstream import Upstream, UpstreamRequest
from tests.gateway.conftest import Stage

from hubgate.server.resources import Hub


@pytest.mark.limits(permission_check_seconds=0.2)
def test_o44_former_member_reads_no_further_logs(stage: Stage, upstream: Upstream) -> None:
    hub, removed = stage.hub, threading.Event()
    rob = create_user(hub, "rob")
    create_organization(hub, "club", stage.ada, rob="read")

    def answer(request: UpstreamRequest) -> None:
        request.start(200, ("content-type", "text/event-stream"))
        request.write(b"data: 0\n\n")
        assert removed.wait(60)
        request.wait_until_closed()

    upstream.answer = answer
    with stage.client(create_token(hub, rob)) as client, client.stream("GET", "/api/jobs/club/1/logs") as logs:
        pieces = logs.iter_raw()
        assert next(pieces) == b"data: 0\n\n"
        with stage.client() as admin:
            assert admin.delete("/api/organizations/club/members/rob").status_code < 300
        removed.set()
        with pytest.raises(httpx.RemoteProtocolError):
            next(pieces)
    assert upstream.last.closed.wait(60)


@pytest.mark.one_engine
@pytest.mark.limits(permission_check_seconds=0.05)
def test_stream_continues_while_the_permission_lasts(stage: Stage, upstream: Upstream) -> None:
    def answer(request: UpstreamRequest) -> None:
        request.start(200, ("content-type", "text/event-stream"))
        for _ in range(5):
            request.write(b"x")
            threading.Event().wait(0.1)

    upstream.answer = answer
    with stage.client() as client:
        assert client.get("/v1/x").text == "xxxxx"


def test_o44_token_revoked_in_the_queue_is_rejected(stage: Stage, upstream: Upstream) -> None:
    hub, slots = stage.hub, contextlib.AsyncExitStack()
    hub.call(lambda opened: _occupy(opened, slots, stage.ada.id))
    with ThreadPoolExecutor() as pool, stage.client() as client, api(hub) as anyone:
        waiting = pool.submit(client.post, "/api/jobs/ada/1/cancel")
        until(lambda: hub.call(_queue_length))
        assert anyone.post("/api/credentials/revoke", json={"credentials": [stage.token]}).status_code == 202
        hub.call(lambda _: slots.aclose())
        assert waiting.result(60).status_code == 401
    assert upstream.received == []


async def _occupy(opened: Hub, slots: contextlib.AsyncExitStack, user_id: str) -> None:
    for _ in range(opened.gateway.slots.max_per_caller):
        await slots.enter_async_context(opened.gateway.slots.acquire(user_id))


async def _queue_length(opened: Hub) -> int:
    return len(opened.gateway.slots._queued)
