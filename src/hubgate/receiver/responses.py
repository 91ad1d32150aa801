"""Converts a handler's return value or exception to an HTTP response."""

import dataclasses
import datetime
import json
from collections.abc import Mapping
from enum import Enum
from typing import Any, Protocol, cast

from hubgate.receiver.asgi import Scope, Send, respond
from hubgate.receiver.payload import PayloadObject
from hubgate.receiver.request import Request


class AsgiResponse(Protocol):
    """A response object of Starlette or FastAPI."""

    status_code: int

    async def __call__(self, scope: Scope, receive: Any, send: Send) -> None: ...


class HandlerResponse:
    """A response that is ready to be sent. `status` decides whether the delivery succeeded."""

    def __init__(self, status: int, body: bytes = b"null", *headers: tuple[bytes, bytes]) -> None:
        self.status, self.body, self.headers = status, body, headers

    @property
    def succeeded(self) -> bool:
        return 200 <= self.status < 300

    async def send(self, request: Request, send: Send) -> None:  # noqa: ARG002 (WrappedResponse needs it)
        await respond(send, self.status, self.body, "application/json", *self.headers)


class WrappedResponse(HandlerResponse):
    """A response object of Starlette or FastAPI that the handler returned."""

    def __init__(self, response: AsgiResponse) -> None:
        super().__init__(response.status_code)
        self._response = response

    async def send(self, request: Request, send: Send) -> None:
        await self._response(request.scope, request.receive(), send)


def response_for(value: object) -> HandlerResponse:
    """The response for a handler's return value. Raises TypeError, ValueError or RecursionError if it is not JSON."""
    return _wrapped(value) or HandlerResponse(200, json.dumps(value, default=_plain, allow_nan=False).encode())


def response_without_body(value: object) -> HandlerResponse:
    """The response for a handler that runs after the acknowledgement: only its status is used.

    Any return value is a success, except a response object with an error status.
    """
    return _wrapped(value) or HandlerResponse(200)


def _wrapped(value: object) -> HandlerResponse | None:
    if callable(value) and isinstance(getattr(value, "status_code", None), int):
        return WrappedResponse(cast("AsgiResponse", value))
    return None


def response_for_exception(error: BaseException) -> HandlerResponse | None:
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
    return HandlerResponse(status, body, *raw)


def error_response(text: str) -> HandlerResponse:
    return HandlerResponse(500, json.dumps({"error": text}).encode())


def _plain(value: Any) -> Any:
    if isinstance(value, PayloadObject):
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
