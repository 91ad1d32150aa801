"""Styles, scripts and icons: read once, named by their content, cached by browsers for ever."""

import hashlib
from functools import cache
from pathlib import Path

from starlette.responses import Response

from hubgate.server.errors import NotFound
from hubgate.server.http.request import HubRequest
from hubgate.server.http.routes import Route
from hubgate.server.http.surface import Surface

_FOLDER = Path(__file__).with_name("static")
_TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}


@cache
def _files() -> dict[str, tuple[str, bytes]]:
    """Name to digest and content."""
    found = {path.name: path.read_bytes() for path in _FOLDER.iterdir() if path.suffix in _TYPES}
    return {name: (hashlib.sha256(content).hexdigest()[:16], content) for name, content in found.items()}


def asset_url(name: str) -> str:
    digest, _ = _files()[name]
    return f"/static/{digest}/{name}"


def static_routes() -> list[Route]:
    return [Route("GET", "/static/{digest}/{name}", _static, Surface.PAGE, "hub.public", "Styles, scripts and icons")]


async def _static(request: HubRequest) -> Response:
    digest, content = _files().get(request.param("name"), ("", b""))
    if not digest or digest != request.param("digest"):
        raise NotFound("Nothing here, or not for you. Another account may see more.")
    kind = _TYPES[Path(request.param("name")).suffix]
    return Response(content, headers={"content-type": kind, "cache-control": "public, max-age=31536000, immutable"})
