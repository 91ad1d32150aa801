"""Tunnels, and the messages on their WebSockets. No I/O.

A message is one line of JSON, a line break, and the body of the request or of the answer as it is.
"""

from collections.abc import Iterable
from typing import TypeVar

import msgspec
from msgspec import Struct

from hubgate.server.clock import HOUR, MINUTE
from hubgate.server.secret import RandomText

LIFETIME = 72 * HOUR
# The oldest link of a user is removed when another would exceed this number. The user's apps together have as many.
MAX_PER_USER = 10
# Rows are deleted some time after nobody waits for them any more.
REQUEST_LIFETIME = MINUTE

MAX_BODY = 1024 * 1024
MAX_ANSWER = 64 * 1024
MAX_ANSWER_MESSAGE = MAX_ANSWER + 1024
LONGEST_RETRY_AFTER = 64

_ID_LETTERS = "abcdefghijklmnopqrstuvwxyz234567"
_ID_LENGTH = 26
_random_id = RandomText(_ID_LETTERS)

# Credentials for the hub, headers of the connection, and addresses of the sender never reach a receiver.
_DROPPED = frozenset(
    """
    authorization connection content-length cookie cookie2 expect forwarded host keep-alive proxy-authorization
    proxy-connection te trailer transfer-encoding upgrade via x-forwarded-for x-forwarded-host x-forwarded-port
    x-forwarded-proto x-real-ip
    """.split()  # noqa: SIM905 -- a paragraph of names reads better than twenty lines
)

Headers = list[tuple[str, str]]
T = TypeVar("T")


class TunnelLimits(Struct, frozen=True):
    # For the answer to a POST from outside; deliveries of this hub have their own deadline.
    answer_seconds: float
    # POSTs to one link in a minute.
    posts: int
    # Requests of one tunnel that have no answer yet.
    waiting: int
    # The receiver's program sends an empty message every 20 seconds.
    silence_seconds: float
    # A program that accepts nothing for this long is disconnected, and so is one that leaves `waiting` requests unread:
    # they wait in memory, each with up to 1 MiB.
    stall_seconds: float


class Tunnel(Struct, frozen=True):
    id: str
    user_id: str
    # The app that opened it, and how it acts for the user; None for the user.
    opened_by: str | None
    created_at: int
    expires_at: int


class RequestHead(Struct, frozen=True):
    id: str
    path: str
    headers: Headers


class AnswerHead(Struct, frozen=True, rename="camel"):
    id: str
    status: int
    retry_after: str | None = None


class Answer(Struct, frozen=True):
    """The receiver's answer. No other header passes: neither cookies nor a media type that a browser would run."""

    status: int
    retry_after: str | None
    body: bytes


class BadMessage(ValueError):
    """A message of a receiver's program that does not follow the protocol."""


def new_tunnel_id() -> str:
    """130 random bits in the letters of a host name."""
    return _random_id(_ID_LENGTH)


def forwarded_headers(headers: Iterable[tuple[str, str]]) -> Headers:
    return [(name, value) for name, value in headers if name.lower() not in _DROPPED]


def pack(head: Struct, body: bytes) -> bytes:
    return msgspec.json.encode(head) + b"\n" + body


def unpack(message: bytes, shape: type[T]) -> tuple[T, bytes]:
    head, _, body = message.partition(b"\n")
    try:
        return msgspec.json.decode(head, type=shape), body
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadMessage("the head is not valid JSON of its shape") from error


def answer_from(message: bytes) -> tuple[str, Answer]:
    """The id of the request and its answer, from a message of the receiver's program."""
    if len(message) > MAX_ANSWER_MESSAGE:
        raise BadMessage("too large")
    head, body = unpack(message, AnswerHead)
    if not 200 <= head.status <= 599 or len(body) > MAX_ANSWER:
        raise BadMessage("not an answer")
    return head.id, Answer(head.status, _usable_retry_after(head.retry_after), body)


def _usable_retry_after(given: str | None) -> str | None:
    """The value of the header, or None: a receiver's header must not end the connection, nor inject another header."""
    value = (given or "").strip()
    return value if value.isascii() and value.isprintable() and 0 < len(value) < LONGEST_RETRY_AFTER else None
