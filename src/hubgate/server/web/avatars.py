"""Avatars generated from an id: a mirrored five-by-five grid in one of 12 colours. Nothing is uploaded or fetched."""

import hashlib

from starlette.responses import Response

from hubgate.server.edge.routes import Route, public
from hubgate.server.errors import NotFound
from hubgate.server.http.request import HubRequest
from hubgate.server.http.surface import Surface
from hubgate.server.ids import is_id

_COLOURS = (
    "#0b5fa8", "#17693a", "#7d4e00", "#b3261e", "#5b4a9e", "#00696b",
    "#8a3d66", "#4f6200", "#9a4521", "#3c5a99", "#6a5c2d", "#456173",
)  # fmt: skip


def avatar_url(owner_id: str) -> str:
    return f"/avatars/{owner_id}.svg"


def routes() -> list[Route]:
    return [
        Route(
            "GET",
            "/avatars/{id}.svg",
            public(_avatar),
            Surface.PROBE,
            "The generated avatar of a user or an organization",
            answers={200: ("An SVG image that depends only on the id.", None)},
        )
    ]


async def _avatar(request: HubRequest) -> Response:
    owner_id = request.param("id")
    # The account is not looked up: the picture depends only on the id.
    if not is_id(owner_id):
        raise NotFound("Avatar not found.")
    headers = {"cache-control": "public, max-age=86400", "content-security-policy": "default-src 'none'"}
    return Response(draw(owner_id), media_type="image/svg+xml", headers=headers)


def draw(owner_id: str) -> str:
    digest = hashlib.sha256(owner_id.encode()).digest()
    colour = _COLOURS[digest[0] % len(_COLOURS)]
    squares = []
    for column in range(3):
        for row in range(5):
            if digest[1 + column * 5 + row] % 2:
                squares += [f"M{x + 1} {row + 1}h1v1h-1z" for x in {column, 4 - column}]
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 7 7" shape-rendering="crispEdges">'
        f'<path fill="{colour}" d="M0 0h7v7H0z"/><path fill="#fff" fill-opacity=".85" d="{"".join(squares)}"/></svg>'
    )
