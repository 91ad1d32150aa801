"""Limits of tunnels: time for an answer, requests a minute, requests without an answer, and silent programs."""

from threading import Event, Thread
from typing import Any

import httpx
import pytest
from tests.bed.people import api, create_token, create_user
from tests.bed.processes import until
from tests.bed.running_hub import RunningHub
from tests.protocol.test_tunnels import Posting, answer, close_code, open_tunnel, read_request, socket_to

from hubgate.server.clock import MINUTE, SECOND
from hubgate.server.hub.context import Limits


@pytest.fixture
def token(hub: RunningHub) -> str:
    return create_token(hub, create_user(hub, "ada"))


@pytest.fixture
def tunnel(hub: RunningHub, token: str) -> dict[str, Any]:
    with api(hub, token) as ada:
        return open_tunnel(ada)


def post(tunnel: dict[str, Any]) -> httpx.Response:
    return httpx.post(f"{tunnel['url']}webhooks/x", content=b"{}", timeout=60)


def test_default_limits() -> None:
    limits = Limits()
    assert (limits.tunnel_answer_seconds, limits.tunnel_silence_seconds) == (15, 60)
    assert (limits.tunnel_posts, limits.tunnel_waiting) == (600, 32)


@pytest.mark.one_engine
@pytest.mark.limits(tunnel_answer_seconds=1.5, tunnel_waiting=1)
def test_post_without_an_answer_in_time_is_a_504(hub: RunningHub, token: str, tunnel: dict[str, Any]) -> None:
    unconnected = post(tunnel)
    assert (unconnected.status_code, unconnected.json()["error"]) == (504, "The receiver did not answer in time.")
    assert unconnected.headers["content-security-policy"] == "default-src 'none'; sandbox"
    with socket_to(hub, tunnel["id"], token) as socket:
        assert post(tunnel).status_code == 504
        late, _ = read_request(socket)
        answer(socket, late["id"], 200, b'"late"')
        # Requests that timed out do not count as waiting, and their answers reach nobody.
        posting = Posting(f"{tunnel['url']}webhooks/x", content=b"{}")
        answer(socket, read_request(socket)[0]["id"], 200, b'"in time"')
        assert posting.answer().json() == "in time"


@pytest.mark.limits(tunnel_posts=3, tunnel_answer_seconds=0.05)
def test_posts_to_a_link_are_limited_by_the_minute(hub: RunningHub, token: str, tunnel: dict[str, Any]) -> None:
    assert [post(tunnel).status_code for _ in range(3)] == [504, 504, 504]
    refused = post(tunnel)
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "60")
    assert refused.headers["content-security-policy"] == "default-src 'none'; sandbox"
    with api(hub, token) as ada:
        assert post(open_tunnel(ada)).status_code == 504, "another link has its own limit"
    hub.clock.advance(MINUTE // SECOND)
    assert post(tunnel).status_code == 504


@pytest.mark.one_engine
@pytest.mark.limits(tunnel_waiting=4)
def test_requests_without_an_answer_are_limited(hub: RunningHub, token: str, tunnel: dict[str, Any]) -> None:
    with socket_to(hub, tunnel["id"], token) as socket:
        posts = [Posting(f"{tunnel['url']}webhooks/x", content=b"{}") for _ in range(16)]
        waiting = [read_request(socket)[0]["id"] for _ in range(4)]
        refused = post(tunnel)
        assert (refused.status_code, refused.json()["error"]) == (
            503,
            "Too many requests to this receiver have no answer yet. Try again.",
        )
        # A request that arrives later would be accepted.
        until(lambda: sum(each.is_answered for each in posts) == 12)
        for request_id in waiting:
            answer(socket, request_id, 200)
        assert sorted(each.answer().status_code for each in posts) == [200] * 4 + [503] * 12
        posting = Posting(f"{tunnel['url']}webhooks/x", content=b"{}")
        answer(socket, read_request(socket)[0]["id"], 204, b"")
        assert posting.answer().status_code == 204


@pytest.mark.one_engine
@pytest.mark.limits(tunnel_silence_seconds=2.0)
def test_silent_program_is_disconnected(hub: RunningHub, token: str, tunnel: dict[str, Any]) -> None:
    with api(hub, token) as ada:
        other = open_tunnel(ada)
    ended = Event()
    with socket_to(hub, tunnel["id"], token) as silent, socket_to(hub, other["id"], token) as talking:

        def talk() -> None:
            while not ended.wait(0.1):
                talking.send(b"")

        thread = Thread(target=talk)
        thread.start()
        try:
            assert close_code(silent) == 4408
            posting = Posting(f"{other['url']}webhooks/x", content=b"{}")
            answer(talking, read_request(talking)[0]["id"], 200, b'"here"')
            assert posting.answer().json() == "here"
        finally:
            ended.set()
            thread.join()
