"""Requests, answers and effects as plain values. The core makes and reads them; a face carries them out.

An operation is a generator: it yields effects and is sent their results, so the same code serves threads and event
loops, and a test could drive it without a network.
"""

from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar, cast

T = TypeVar("T")

MIB = 1024 * 1024
# More than any answer in JSON that is not a whole export.
MOST_JSON = 32 * MIB


@dataclass(frozen=True)
class Upload:
    """A body that is read while it is sent, anew for each try. It yields exactly `size` bytes, or raises."""

    size: int
    pieces: Callable[[], Iterator[bytes]]


class Sink(Protocol):
    """Takes the body of a download piece by piece. Called in a worker thread where a loop runs."""

    def begin(self, answer: "Response") -> bool:
        """Whether it wants this body; if not it is read as a short text."""

    def write(self, piece: bytes) -> None: ...


@dataclass(frozen=True)
class Request:
    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes | Upload = b""
    sink: Sink | None = None
    most: int = MOST_JSON
    # Seconds to wait for an answer, where the hub has much to do before it gives one.
    patience: float | None = None


@dataclass(frozen=True)
class Response:
    """Header names are in lower case. `body` is empty where a sink took it."""

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
    """Something that blocks: hashing a file, waiting for a browser."""

    function: Callable[[], object]


Effect = Send | Sleep | Work
Flow = Generator[Effect, Any, T]


def send(request: Request) -> Flow[Response]:
    return cast("Response", (yield Send(request)))


def sleep(seconds: float) -> Flow[None]:
    yield Sleep(seconds)


def work(function: Callable[[], T]) -> Flow[T]:
    return cast("T", (yield Work(function)))
