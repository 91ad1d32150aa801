"""ASGI helpers: types, simple responses, and the path of a request in a mounted app."""

import json
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
RawHeaders = list[tuple[bytes, bytes]]

# RFC 9110, 6.4.1: a server aborts a response with one of these statuses and a body.
WITHOUT_BODY = (204, 304)


def path_of(scope: Scope) -> str:
    """The path relative to the app's mount point, without a trailing slash."""
    path: str = scope["path"]
    root: str = scope.get("root_path", "").rstrip("/")
    # Frameworks disagree on whether `path` includes the mount point. Behind a proxy that strips its own prefix, `path`
    # includes only the mount point, while `root_path` includes both.
    for prefix in (root, root.removeprefix(scope.get("app_root_path", "").rstrip("/"))):
        if prefix and (path == prefix or path.startswith(prefix + "/")):
            path = path[len(prefix) :]
            break
    return path.removesuffix("/") or "/"


def header_values(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> list[bytes]:
    return [value for key, value in headers if key.lower() == name]


async def respond(send: Send, status: int, body: bytes, content_type: str, *more: tuple[bytes, bytes]) -> None:
    if status in WITHOUT_BODY:
        await send({"type": "http.response.start", "status": status, "headers": list(more)})
        await send({"type": "http.response.body", "body": b""})
        return
    headers = [
        (b"content-type", content_type.encode("latin-1")),
        (b"content-length", str(len(body)).encode()),
        (b"x-content-type-options", b"nosniff"),
        *more,
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def respond_json(send: Send, status: int, value: object, *more: tuple[bytes, bytes]) -> None:
    await respond(send, status, json.dumps(value).encode(), "application/json", *more)


async def respond_error(send: Send, status: int, text: str, *more: tuple[bytes, bytes]) -> None:
    await respond_json(send, status, {"error": text}, *more)
