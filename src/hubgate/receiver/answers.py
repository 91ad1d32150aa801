"""Converts a handler's return value or exception to an HTTP response."""

import dataclasses
import datetime
import json
from collections.abc import Mapping
from enum import Enum
from typing import Any, Protocol, cast

from hubgate.receiver.asgi import Scope, Send, respond
from hubgate.receiver.payload import Part
from hubgate.receiver.request import Request


class AsgiAnswer(Protocol):
    """A response object of Starlette or FastAPI."""

    status_code: int

    async def __call__(self, scope: Scope, receive: Any, send: Send) -> None: ...


class Answer:
    """A response that is ready to be sent. `status` decides whether the delivery succeeded."""

    def __init__(self, status: int, body: bytes = b"null", *headers: tuple[bytes, bytes]) -> None:
        self.status, self.body, self.headers = status, body, headers

    @property
    def succeeded(self) -> bool:
        return 200 <= self.status < 300

    async def send(self, request: Request, send: Send) -> None:  # noqa: ARG002 (a foreign one needs it)
        await respond(send, self.status, self.body, "application/json", *self.headers)


class ForeignAnswer(Answer):
    def __init__(self, response: AsgiAnswer) -> None:
        super().__init__(response.status_code)
        self._response = response

    async def send(self, request: Request, send: Send) -> None:
        await self._response(request.scope, request.receive(), send)


def answer_for(value: object) -> Answer:
    """The response for a handler's return value. Raises TypeError, ValueError or RecursionError if it is not JSON."""
    return _foreign(value) or Answer(200, json.dumps(value, default=_plain, allow_nan=False).encode())


def result_of(value: object) -> Answer:
    """The result of a handler whose sender no longer waits. Any value is a success, except a response that failed."""
    return _foreign(value) or Answer(200)


def _foreign(value: object) -> Answer | None:
    if callable(value) and isinstance(getattr(value, "status_code", None), int):
        return ForeignAnswer(cast("AsgiAnswer", value))
    return None


def answer_for_exception(error: BaseException) -> Answer | None:
    """The response for an HTTPException of Starlette or FastAPI; None for other exceptions."""
    status = getattr(error, "status_code", None)
    if not isinstance(status, int) or not hasattr(error, "detail") or not 200 <= status <= 599:
        return None
    given = getattr(error, "headers", None)
    headers = given if isinstance(given, Mapping) else {}
    try:
        body = json.dumps({"detail": error.detail}, default=str).encode()
        raw = [(str(key).encode("latin-1"), str(headers[key]).encode("latin-1")) for key in headers]
    except (TypeError, ValueError, RecursionError):
        return None
    return Answer(status, body, *raw)


def failure(text: str) -> Answer:
    return Answer(500, json.dumps({"error": text}).encode())


def _plain(value: Any) -> Any:
    if isinstance(value, Part):
        return value.raw
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, set | frozenset):
        return list(value)
    raise TypeError(f"{type(value).__name__} is not JSON")
