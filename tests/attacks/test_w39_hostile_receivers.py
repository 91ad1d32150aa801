"""W39: programs behind tunnels that send anything, or read nothing, harm neither the hub nor other users."""

import logging
import socket as sockets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import httpx
import pytest
from tests.bed.people import api, browser_of, create_token, create_user
from tests.bed.processes import until
from tests.bed.running_hub import RunningHub
from tests.bed.tunnels import open_websocket
from tests.protocol.test_tunnels import Posting, answer, close_code, open_tunnel, read_request, socket_to
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect


@pytest.fixture
def token(hub: RunningHub) -> str:
    return create_token(hub, create_user(hub, "ada"))


@pytest.fixture
def tunnel(hub: RunningHub, token: str) -> dict[str, Any]:
    with api(hub, token) as ada:
        return open_tunnel(ada)


def count_writes(hub: RunningHub) -> list[int]:
    """A list that gets an entry for each transaction of the hub that writes."""
    writes: list[int] = []

    async def count(opened: Any) -> None:
        write = opened.db.write

        async def counted(*arguments: Any) -> Any:
            writes.append(1)
            return await write(*arguments)

        opened.db.write = counted

    hub.call(count)
    return writes


@pytest.mark.one_engine
@pytest.mark.parametrize(
    "head",
    [
        b'{"id": "x", "status": 200, "more": ' + b"[" * 60_000,
        b'{"id": "\\u0000", "status": 200}',
        b'{"id": "\\ud800", "status": 200}',
        b'{"id": "x", "status": 1e999}',
        b"\xff\xfe",
    ],
)
def test_w39_malformed_heads_cause_no_error(
    hub: RunningHub, token: str, tunnel: dict[str, Any], head: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    with socket_to(hub, tunnel["id"], token) as socket:
        socket.send(head + b"\n{}")
        socket.send(b"not an answer\n")
        assert close_code(socket) == 4400
    assert "unexpected" not in caplog.text


@pytest.mark.one_engine
def test_w39_answers_to_no_request_are_not_written(hub: RunningHub, token: str, tunnel: dict[str, Any]) -> None:
    with socket_to(hub, tunnel["id"], token) as socket:
        posting = Posting(f"{tunnel['url']}webhooks/x", content=b"{}")
        head, _ = read_request(socket)
        writes = count_writes(hub)
        for number in range(50):
            answer(socket, f"{number:024x}", 200)
        answer(socket, head["id"], 200, b'"first"')
        for _ in range(50):
            answer(socket, head["id"], 200, b'"again"')
        assert posting.answer().json() == "first"
    assert len(writes) < 10


@pytest.mark.one_engine
@pytest.mark.parametrize("given", [" 7", "", "x" * 100, "7\r\nSet-Cookie: a=b", "\u2028", "\0"])
def test_w39_unusable_retry_after_is_left_out(hub: RunningHub, token: str, tunnel: dict[str, Any], given: str) -> None:
    with socket_to(hub, tunnel["id"], token) as socket:
        posting = Posting(f"{tunnel['url']}webhooks/x", content=b"{}")
        answer(socket, read_request(socket)[0]["id"], 503, retryAfter=given)
        answered = posting.answer()
    assert answered.status_code == 503
    assert answered.headers.get("retry-after") in (None, given.strip())
    assert "set-cookie" not in answered.headers


@contextmanager
def deaf_program(hub: RunningHub, tunnel_id: str, token: str) -> Iterator[sockets.socket]:
    """A program that opens the WebSocket and then reads nothing."""
    address = httpx.URL(hub.url)
    connection = sockets.socket()
    connection.setsockopt(sockets.SOL_SOCKET, sockets.SO_RCVBUF, 4096)
    connection.settimeout(60)
    connection.connect((address.host, address.port))
    try:
        open_websocket(connection, address, tunnel_id, token)
        yield connection
    finally:
        connection.close()


def connected(hub: RunningHub) -> list[Any]:
    async def read(opened: Any) -> list[Any]:
        return list(opened.tunnels.sockets._sockets.values())

    found: list[Any] = hub.call(read)
    return found


def count_requests(hub: RunningHub) -> int:
    """The number of requests that are waiting for a program's answer."""
    row = hub.call(lambda opened: opened.db.one("SELECT count(*) AS waiting FROM tunnel_requests"))
    assert row is not None
    return int(row["waiting"])


@pytest.mark.one_engine
@pytest.mark.limits(tunnel_stall_seconds=1.0, tunnel_answer_seconds=5.0)
def test_w39_program_that_reads_nothing_is_disconnected(hub: RunningHub, token: str, tunnel: dict[str, Any]) -> None:
    """Otherwise requests would pile up in memory."""
    url, body = f"{tunnel['url']}webhooks/x", b"x" * 1024 * 1024
    with deaf_program(hub, tunnel["id"], token):
        until(lambda: len(connected(hub)) == 1)
        posts = [Posting(url, content=body) for _ in range(12)]
        until(lambda: not connected(hub))
    assert {post.answer().status_code for post in posts} == {504}


@pytest.mark.one_engine
@pytest.mark.limits(tunnel_stall_seconds=600.0, tunnel_answer_seconds=8.0)
def test_w39_program_that_reads_nothing_is_disconnected_with_its_link(
    hub: RunningHub, token: str, tunnel: dict[str, Any]
) -> None:
    """Otherwise the connection would outlive it."""
    url, body = f"{tunnel['url']}webhooks/x", b"x" * 1024 * 1024
    with deaf_program(hub, tunnel["id"], token), api(hub, token) as ada:
        until(lambda: len(connected(hub)) == 1)
        posts = [Posting(url, content=body) for _ in range(12)]
        until(lambda: count_requests(hub) == len(posts))
        until(lambda: connected(hub)[0].outgoing.qsize() > 1)
        assert ada.delete(f"/api/tunnels/{tunnel['id']}").status_code == 204
        until(lambda: not connected(hub))
    assert {post.answer().status_code for post in posts} == {504}


@pytest.mark.one_engine
def test_w39_new_connections_survive_the_traffic_of_others(hub: RunningHub, token: str, tunnel: dict[str, Any]) -> None:
    """A step before the connection is stored must not take it for a replaced one."""

    async def step_before_the_next_write(opened: Any) -> None:
        write = opened.db.write

        async def step_and_write(*arguments: Any) -> Any:
            opened.db.write = write
            await opened.tunnels.sockets._step()
            return await write(*arguments)

        opened.db.write = step_and_write

    hub.call(step_before_the_next_write)
    with socket_to(hub, tunnel["id"], token) as socket:
        posting = Posting(f"{tunnel['url']}webhooks/x", content=b"{}")
        answer(socket, read_request(socket)[0]["id"], 200, b'"here"')
        assert posting.answer().json() == "here"


@pytest.mark.one_engine
def test_w39_websockets_to_other_addresses_are_refused(hub: RunningHub, tunnel: dict[str, Any], token: str) -> None:
    with browser_of(hub, create_user(hub, "bob")) as browser:
        cookie = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
    paths = ["/", "/login", "/ada", "/ada/x/resolve/main/y", "/api/whoami-v2", "/v1/models", "/nothing/here/at/all"]
    paths += [f"/tunnel/{tunnel['id']}/webhooks/x", "/ada/x.git/info/refs", "/oauth/token", "/%00", "/api/tunnels"]
    for path in paths:
        for headers in ({"Cookie": cookie, "Origin": "https://evil.example"}, {"Authorization": f"Bearer {token}"}):
            with pytest.raises(InvalidStatus) as refused:
                connect(f"ws{hub.url.removeprefix('http')}{path}", additional_headers=headers, proxy=None)
            assert refused.value.response.status_code in (400, 404, 405), path
    with pytest.raises(InvalidStatus) as refused:
        # A page of another site: browsers send the cookie, which is not a credential here.
        connect(
            f"ws{hub.url.removeprefix('http')}/api/tunnels/{tunnel['id']}",
            additional_headers={"Cookie": cookie, "Origin": "https://evil.example"},
            proxy=None,
        )
    assert refused.value.response.status_code == 401


@pytest.mark.one_engine
def test_w39_huge_message_ends_the_connection(hub: RunningHub, token: str, tunnel: dict[str, Any]) -> None:
    for size in (1024 * 1024, 20 * 1024 * 1024):
        with socket_to(hub, tunnel["id"], token) as socket:
            with suppress(ConnectionClosed):
                socket.send(b"x" * size)
            # The server itself refuses the second one, without a code of ours.
            assert close_code(socket) in ((4400,) if size < 2 * 1024 * 1024 else (None, 1005, 1009))
