"""The replacement for the landing page: a page of HTML, an ASGI app, or gradio Blocks."""

import importlib
from typing import Any, cast

from hubgate.receiver.asgi import App, Receive, Scope, Send, path_of, refuse, respond


def check(ui: Any) -> None:
    """Raise TypeError if the value cannot be used as `ui`."""
    if ui is not None and not isinstance(ui, str) and not callable(ui):
        raise TypeError("ui takes a string of HTML, an ASGI app or gradio Blocks.")


def as_app(ui: Any) -> App:
    if isinstance(ui, str):
        return _page(ui)
    # Blocks are callable too, but not as an ASGI app.
    if _is_blocks(ui):
        return _gradio(ui)
    return cast("App", ui)


def _page(html: str) -> App:
    body = html.encode("utf-8", "replace")

    async def app(scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG001
        if scope["type"] == "lifespan":
            return
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1000})
        elif path_of(scope) != "/":
            await refuse(send, 404, "There is nothing here.")
        elif scope["method"] not in ("GET", "HEAD"):
            await refuse(send, 405, "This is a page.", (b"allow", b"GET, HEAD"))
        else:
            await respond(send, 200, body, "text/html; charset=utf-8")

    return app


def _is_blocks(ui: object) -> bool:
    return any(kind.__name__ == "Blocks" and kind.__module__.startswith("gradio") for kind in type(ui).__mro__)


def _gradio(blocks: object) -> App:
    gradio = importlib.import_module("gradio")
    host = importlib.import_module("fastapi").FastAPI()
    return cast("App", gradio.mount_gradio_app(host, blocks, path="/"))
