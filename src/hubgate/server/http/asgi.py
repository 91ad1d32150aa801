"""The interface of the HTTP servers (ASGI): its types, and the headers of a request as the servers pass them."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, overload

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
ASGIApp = Callable[[Scope, Receive, Send], Awaitable[None]]

RawHeaders = list[tuple[bytes, bytes]]


class ClientDisconnect(Exception):
    """The client disconnected, or its body ended early."""


class RequestHeaders:
    """The headers of a request. Names are in lower case, both here and in `raw`; values are decoded when they are read,
    because a request has many and the hub reads few.

    `first` has the first value of each name. A repeated header that must have one value is rejected before any other
    code runs (`intake.check_head`).
    """

    __slots__ = ("first", "raw")

    def __init__(self, raw: RawHeaders) -> None:
        self.raw = raw
        self.first: dict[bytes, bytes] = dict(reversed(raw))

    @overload
    def get(self, name: str) -> str | None: ...

    @overload
    def get(self, name: str, default: str) -> str: ...

    def get(self, name: str, default: str | None = None) -> str | None:
        value = self.first.get(name.encode())
        return default if value is None else value.decode("latin-1")

    def getlist(self, name: str) -> list[str]:
        """Every value of a header that may repeat."""
        return [value for key, value in self.items() if key == name]

    def items(self) -> list[tuple[str, str]]:
        return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in self.raw]

    def __getitem__(self, name: str) -> str:
        return self.first[name.encode()].decode("latin-1")

    def __contains__(self, name: str) -> bool:
        return name.encode() in self.first
