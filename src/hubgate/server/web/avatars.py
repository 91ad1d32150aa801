"""Avatars of users and organizations, and logos of apps: uploaded pictures, else generated from the id as a mirrored
five-by-five grid in one of 12 colours.

`/avatars/{id}.svg` is an avatar's permanent address. It redirects to the uploaded picture, whose own address changes
with each upload and is cached permanently.
"""

import hashlib

from hubgate.server.accounts.pictures import store
from hubgate.server.accounts.pictures.model import LARGE, MEDIA_TYPE, SIZES, SMALL, address_of
from hubgate.server.edge.routes import Query, Route, public
from hubgate.server.errors import NotFound
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import RedirectResponse, Response
from hubgate.server.http.surface import Surface
from hubgate.server.ids import is_id
from hubgate.server.storage.database import Database

_COLOURS = (
    "#0b5fa8", "#17693a", "#7d4e00", "#b3261e", "#5b4a9e", "#00696b",
    "#8a3d66", "#4f6200", "#9a4521", "#3c5a99", "#6a5c2d", "#456173",
)  # fmt: skip


# Others see a new picture after this time.
_BRIEFLY = "public, max-age=60"
_PERMANENTLY = "public, max-age=31536000, immutable"


def avatar_url(owner_id: str, size: int = LARGE) -> str:
    return f"/avatars/{owner_id}.svg" + ("" if size == LARGE else f"?size={size}")


def routes(db: Database) -> list[Route]:
    async def avatar(request: HubRequest) -> Response:
        owner_id = request.param("id")
        if not is_id(owner_id):
            raise NotFound("Avatar not found.")
        picture_id = await store.id_of(db, owner_id)
        if picture_id is not None:
            size = SMALL if request.query_fields().all("size") == [str(SMALL)] else LARGE
            return RedirectResponse(address_of(owner_id, picture_id, size), 302, {"cache-control": _BRIEFLY})
        # The account is not looked up: a generated picture depends only on the id.
        headers = {"cache-control": _BRIEFLY, "content-security-policy": "default-src 'none'"}
        return Response(draw(owner_id), media_type="image/svg+xml", headers=headers)

    async def picture(request: HubRequest) -> Response:
        size = request.param("size")
        found = await store.content_of(db, request.param("owner"), int(size)) if size in map(str, SIZES) else None
        if found is None:
            raise NotFound("Picture not found.")
        picture_id, content = found
        # Pages that were opened before an upload still name the picture before it.
        caching = _PERMANENTLY if picture_id == request.param("picture") else "no-cache"
        headers = {"cache-control": caching, "content-security-policy": "default-src 'none'; sandbox"}
        return Response(content, media_type=MEDIA_TYPE, headers=headers)

    return [
        Route(
            "GET",
            "/avatars/{id}.svg",
            public(avatar),
            Surface.PROBE,
            "The avatar of a user or an organization",
            query=(Query("size", "64 for a small one."),),
            answers={
                200: ("A generated SVG image that depends only on the id.", None),
                302: ("Location has the uploaded picture.", None),
            },
        ),
        Route(
            "GET",
            "/avatars/{owner}/{picture}/{size}.webp",
            public(picture),
            Surface.PROBE,
            "An uploaded picture or logo",
            answers={200: ("A square WebP image, with sides of 64 or 256 pixels.", None)},
        ),
    ]


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
