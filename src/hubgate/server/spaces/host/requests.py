"""Forwards a request to an app, and reads its answer within limits."""

import asyncio
from collections.abc import Sequence

import msgspec

from hubgate.server.egress.client import can_be_sent, request_head
from hubgate.server.egress.connection import Connection
from hubgate.server.egress.resolve import Unreachable
from hubgate.server.egress.target import Target
from hubgate.server.spaces.model import ANSWER_SECONDS
from hubgate.server.spaces.runner import Running
from hubgate.server.webhooks.tunnels.model import (
    LONGEST_RETRY_AFTER,
    MAX_ANSWER,
    AnswerHead,
    RequestHead,
    pack,
    unpack,
)

# The answer must be readable as it is.
_CODING = "accept-encoding"
_TOO_LONG = "The app's answer is longer than {limit:,} bytes."
_NO_ANSWER = "The app did not answer: {cause}."


async def forward(app: Running, host: str, request_id: str, message: bytes) -> bytes:
    """The message with the app's answer, or with 502 if there is none."""
    head, body = unpack(message, RequestHead)
    target = Target("http", host, 80, head.path, None)
    start = request_head("POST", target, _sendable(head.headers))
    request = start + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            connection = await app.connect(Connection)
            try:
                answer = await connection.exchange(request, MAX_ANSWER)
            finally:
                # Otherwise an app that answers with keep-alive would use up the files that this process may open.
                connection.close()
    except (OSError, Unreachable, TimeoutError) as error:
        cause = error.cause if isinstance(error, Unreachable) else "it has ended, or takes too long"
        return _failure(request_id, 502, _NO_ANSWER.format(cause=cause))
    if answer.truncated:
        return _failure(request_id, 502, _TOO_LONG.format(limit=MAX_ANSWER))
    if not 200 <= answer.status <= 599:
        return _failure(request_id, 502, _NO_ANSWER.format(cause="its status is not one of HTTP"))
    # A longer value is not usable, and must not make the message too large.
    retry_after = (answer.header("retry-after") or "")[:LONGEST_RETRY_AFTER]
    return pack(AnswerHead(request_id, answer.status, retry_after or None), answer.body)


def _sendable(headers: Sequence[tuple[str, str]]) -> dict[str, str]:
    """The headers for the app. Those with other characters than usual are left out, and repeated ones joined."""
    found: dict[str, str] = {}
    for name, value in headers:
        lower = name.lower()
        if lower != _CODING and can_be_sent(name, value):
            found[lower] = f"{found[lower]}, {value}" if lower in found else value
    return found


def not_running(request_id: str) -> bytes:
    return _failure(request_id, 503, "The app does not run now. Try again.")


def _failure(request_id: str, status: int, message: str) -> bytes:
    return pack(AnswerHead(request_id, status), msgspec.json.encode({"error": message}))
