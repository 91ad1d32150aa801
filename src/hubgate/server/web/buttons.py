"""Sign-in buttons for other sites, at stable addresses so that pages can embed them."""

import re
from functools import cache
from pathlib import Path

from msgspec import Struct

from hubgate.server.edge.edge import NOTHING_HERE
from hubgate.server.edge.routes import Route, public
from hubgate.server.errors import NotFound
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.http.surface import Surface

PATH = "/static/buttons/{name}"
THEMES = ("light", "dark")
SIZES = ("sm", "md", "lg", "xl")
LABEL = "Sign in with hubgate"
_FOLDER = Path(__file__).with_name("static") / "buttons"
_HEADERS = {"content-type": "image/svg+xml", "cache-control": "public, max-age=86400"}


class Button(Struct, frozen=True):
    theme: str
    size: str
    content: bytes

    @property
    def path(self) -> str:
        return PATH.replace("{name}", f"sign-in-{self.theme}-{self.size}.svg")

    @property
    def width(self) -> int:
        return self._length(b"width")

    @property
    def height(self) -> int:
        return self._length(b"height")

    def _length(self, name: bytes) -> int:
        found = re.search(name + rb'="([0-9]+)"', self.content)
        return int(found.group(1)) if found else 0


@cache
def buttons() -> dict[str, Button]:
    """All buttons by file name, in display order."""
    names = {f"sign-in-{theme}-{size}.svg": (theme, size) for theme in THEMES for size in SIZES}
    return {name: Button(*kind, (_FOLDER / name).read_bytes()) for name, kind in names.items()}


def routes() -> list[Route]:
    async def button(request: HubRequest) -> Response:
        found = buttons().get(request.param("name"))
        if found is None:
            raise NotFound(NOTHING_HERE)
        return Response(found.content, headers=_HEADERS)

    # Opened directly, the SVG is a document of our origin: Surface.FILE prevents it from running scripts.
    return [Route("GET", PATH, public(button), Surface.FILE, "A sign-in button", answers={200: ("SVG.", None)})]
