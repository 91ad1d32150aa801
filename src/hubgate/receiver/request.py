"""The request object for handlers, with the delivery's metadata from its headers."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import SplitResult, parse_qsl

from hubgate.depth import HEADER as DEPTH
from hubgate.receiver.asgi import Message, RawHeaders, Receive, Scope
from hubgate.receiver.payload import parse_json

# Headers with credentials, which are neither stored nor shown.
SECRET_HEADERS = (b"x-webhook-secret", b"webhook-signature", b"authorization", b"proxy-authorization", b"cookie")
_NUMBER = re.compile(r"[0-9]{1,9}")


class Headers(Mapping[str, str]):
    """Case-insensitive headers. The last value of a repeated header counts."""

    def __init__(self, raw: Iterable[tuple[bytes, bytes]]) -> None:
        self._values = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in raw}

    def __getitem__(self, name: str) -> str:
        return self._values[name.lower()]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name.lower() in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        shown = {name: "..." if name.encode() in SECRET_HEADERS else value for name, value in self._values.items()}
        return f"Headers({shown!r})"

    def number(self, name: str) -> int | None:
        value = self.get(name, "")
        return int(value) if _NUMBER.fullmatch(value) else None


class Address(NamedTuple):
    host: str
    port: int


@dataclass(frozen=True, eq=False)
class Request:
    """The HTTP request of a delivery, compatible with Starlette's and FastAPI's requests as far as handlers need it.

    With `ack="before"` the request is rebuilt from the inbox, without the headers that contain secrets.
    """

    scope: Scope
    content: bytes

    @property
    def method(self) -> str:
        return str(self.scope["method"])

    @property
    def headers(self) -> Headers:
        return Headers(self.scope["headers"])

    @property
    def url(self) -> SplitResult:
        query = self.scope.get("query_string", b"").decode("latin-1")
        return SplitResult(
            self.scope.get("scheme", "http"), self.headers.get("host", ""), self.scope["path"], query, ""
        )

    @property
    def query_params(self) -> dict[str, str]:
        return dict(parse_qsl(self.url.query, keep_blank_values=True))

    @property
    def client(self) -> Address | None:
        client = self.scope.get("client")
        return Address(client[0], client[1] or 0) if client else None

    @property
    def delivery_id(self) -> str | None:
        return self.headers.get("webhook-id")

    @property
    def attempt(self) -> int | None:
        return self.headers.number("x-hubgate-attempt")

    @property
    def sequence(self) -> int | None:
        """The number of the event in its repo, without gaps. Retried deliveries may be received out of order."""
        return self.headers.number("x-hubgate-sequence")

    @property
    def depth(self) -> int:
        return self.headers.number(DEPTH) or 0

    @property
    def is_test(self) -> bool:
        return self.headers.get("x-hubgate-test") == "1"

    async def body(self) -> bytes:
        return self.content

    async def json(self) -> Any:
        return parse_json(self.content)

    def receive(self) -> Receive:
        """An ASGI `receive` that returns the whole body and then a disconnect, for code that reads the body itself."""
        sent = False

        async def receive() -> Message:
            nonlocal sent
            if sent:
                return {"type": "http.disconnect"}
            sent = True
            return {"type": "http.request", "body": self.content, "more_body": False}

        return receive


def without_secrets(headers: Iterable[tuple[bytes, bytes]]) -> RawHeaders:
    return [(name, value) for name, value in headers if name.lower() not in SECRET_HEADERS]


def rebuild_request(path: str, headers: RawHeaders, content: bytes) -> Request:
    """Rebuild a request from the inbox."""
    scope: Scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"",
        "headers": headers,
        "client": None,
        "server": None,
    }
    return Request(scope, content)
