"""Styles, scripts and icons: read and compressed once, with a hash of the content in the URL, cached permanently."""

import gzip
import hashlib
from functools import cache
from pathlib import Path

from msgspec import Struct

from hubgate.server.edge.routes import Route, public
from hubgate.server.errors import NotFound
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.http.surface import Surface

_FOLDER = Path(__file__).with_name("static")
_TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}


class _Asset(Struct, frozen=True):
    digest: str
    media_type: str
    content: bytes
    gzipped: bytes


@cache
def _assets() -> dict[str, _Asset]:
    return {path.name: _read(path) for path in _FOLDER.iterdir() if path.suffix in _TYPES}


def _read(path: Path) -> _Asset:
    content = path.read_bytes()
    digest = hashlib.sha256(content).hexdigest()[:16]
    # Only static files are compressed. A page contains the visitor's CSRF value next to text from the address, and the
    # length of both compressed together would reveal the value (BREACH).
    return _Asset(digest, _TYPES[path.suffix], content, gzip.compress(content, mtime=0))


def asset_url(name: str) -> str:
    return f"/static/{_assets()[name].digest}/{name}"


def static_routes() -> list[Route]:
    """Routes of the static files. Surface.PROBE skips the session lookup, so that error pages are styled even while the
    database is unavailable.
    """
    return [Route("GET", "/static/{digest}/{name}", public(_static), Surface.PROBE, "Styles, scripts and icons")]


async def _static(request: HubRequest) -> Response:
    asset = _assets().get(request.param("name"))
    if asset is None or asset.digest != request.param("digest"):
        raise NotFound("File not found.")
    headers = {
        "content-type": asset.media_type,
        "cache-control": "public, max-age=31536000, immutable",
        "vary": "accept-encoding",
    }
    if _accepts_gzip(request.headers.get("accept-encoding", "")):
        return Response(asset.gzipped, headers={**headers, "content-encoding": "gzip"})
    return Response(asset.content, headers=headers)


def _accepts_gzip(accepted: str) -> bool:
    for offer in accepted.lower().replace(" ", "").split(","):
        coding, _, weight = offer.partition(";q=")
        if coding == "gzip":
            # "q=0" and "q=0.0" reject the coding.
            return weight.strip("0.") != "" or weight == ""
    return False
