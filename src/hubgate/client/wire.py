"""Requests, responses and effects as plain values. The core creates them; a driver performs them.

An operation is a generator that yields effects and receives their results, so the same code serves threads and event
loops, and can be tested without a network.
"""

from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar, cast

T = TypeVar("T")

MIB = 1024 * 1024
# Larger than any JSON response except an export.
MAX_JSON_BYTES = 32 * MIB


@dataclass(frozen=True)
class Upload:
    """A body that is read while it is sent, again for each try. `pieces` yields exactly `size` bytes, or raises."""

    size: int
    pieces: Callable[[], Iterator[bytes]]


class Sink(Protocol):
    """Receives the body of a download in pieces. `AsyncHub` calls it in worker threads."""

    def begin(self, response: "Response") -> bool:
        """Whether the sink accepts this body; otherwise the body is read into the response."""

    def write(self, piece: bytes) -> None: ...


@dataclass(frozen=True)
class Request:
    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes | Upload = b""
    sink: Sink | None = None
    max_bytes: int = MAX_JSON_BYTES
    # Seconds to wait for the response, if the hub needs longer than the default timeout.
    read_timeout: float | None = None


@dataclass(frozen=True)
class Response:
    """A response. Header names are in lower case. `body` is empty if a sink received it."""

    status: int
    headers: Mapping[str, str]
    url: str
    body: bytes = b""

    @property
    def media_type(self) -> str:
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()


@dataclass(frozen=True)
class Send:
    request: Request


@dataclass(frozen=True)
class Sleep:
    seconds: float


@dataclass(frozen=True)
class Work:
    """Blocking work, such as hashing a file or waiting for a browser."""

    function: Callable[[], object]


Effect = Send | Sleep | Work
Flow = Generator[Effect, Any, T]


def send(request: Request) -> Flow[Response]:
    return cast("Response", (yield Send(request)))


def sleep(seconds: float) -> Flow[None]:
    yield Sleep(seconds)


def work(function: Callable[[], T]) -> Flow[T]:
    return cast("T", (yield Work(function)))
