"""A streamed answer: however it ends, its source is closed."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from hubgate.server.errors import StorageUnavailable
from hubgate.server.http.asgi import ClientDisconnect
from hubgate.server.http.streaming import StreamedResponse


class Line:
    """A client's connection: `leave` is when the client disconnects, `torn` when the server's send fails."""

    def __init__(self, leave_after: int | None = None, torn_after: int | None = None) -> None:
        self.sent: list[dict[str, Any]] = []
        self.gone = asyncio.Event()
        self._leave_after, self._torn_after = leave_after, torn_after

    async def receive(self) -> dict[str, Any]:
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        self.sent.append(message)
        if len(self.sent) == self._leave_after:
            self.gone.set()
        if len(self.sent) == self._torn_after:
            raise ClientDisconnect
        await asyncio.sleep(0)


async def parts(closed: list[bool], limit: int, error: Exception | None = None) -> AsyncGenerator[bytes, None]:
    try:
        for number in range(limit):
            yield str(number).encode()
        if error is not None:
            raise error
    finally:
        closed.append(True)


async def answer(line: Line, made: AsyncGenerator[bytes, None]) -> None:
    await StreamedResponse(made, {"X-Name": "v"})({}, line.receive, line.send)


async def test_parts_are_sent_in_order() -> None:
    closed: list[bool] = []
    line = Line()
    await answer(line, parts(closed, 3))
    assert line.sent[0] == {"type": "http.response.start", "status": 200, "headers": [(b"x-name", b"v")]}
    assert [(part["body"], part["more_body"]) for part in line.sent[1:]] == [
        (b"0", True),
        (b"1", True),
        (b"2", True),
        (b"", False),
    ]
    assert closed == [True]


@pytest.mark.parametrize("line", [{"leave_after": 3}, {"torn_after": 2}])
async def test_disconnect_ends_the_source_at_once(line: dict[str, int]) -> None:
    closed: list[bool] = []
    client = Line(**line)
    with pytest.raises(ClientDisconnect):
        await answer(client, parts(closed, 1_000_000))
    assert closed == [True]
    assert len(client.sent) < 6
    assert client.sent[-1]["more_body"], "it is never ended as if it were whole"


async def test_failure_of_the_first_part_can_still_be_answered() -> None:
    closed: list[bool] = []
    line = Line()
    with pytest.raises(StorageUnavailable):
        await answer(line, parts(closed, 0, StorageUnavailable()))
    assert (line.sent, closed) == ([], [True])


async def test_later_failure_cuts_the_answer_off() -> None:
    closed: list[bool] = []
    line = Line()
    with pytest.raises(StorageUnavailable):
        await answer(line, parts(closed, 2, StorageUnavailable()))
    assert line.sent[-1] == {"type": "http.response.body", "body": b"1", "more_body": True}
    assert closed == [True]
