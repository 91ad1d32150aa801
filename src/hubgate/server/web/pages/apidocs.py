"""The OpenAPI document, and a page that displays it."""

from collections.abc import Sequence
from functools import cache
from typing import Any

from starlette.responses import Response

from hubgate.server.edge.openapi import document
from hubgate.server.edge.routes import Route, public
from hubgate.server.edge.table import RouteTable
from hubgate.server.http.render import JsonResponse
from hubgate.server.http.request import HubRequest
from hubgate.server.http.surface import Surface
from hubgate.server.web.pages.api_reference import shapes, subjects
from hubgate.server.web.rendering import Pages


def routes(pages: Pages, base_url: str, documented: Sequence[Route]) -> list[Route]:
    async def openapi(_: HubRequest) -> JsonResponse:
        return JsonResponse(described(), headers={"cache-control": "public, max-age=300"})

    async def readable(request: HubRequest) -> Response:
        return pages.page(request, "apidocs.html", **reading())

    own = [
        Route(
            "GET",
            "/api/openapi.json",
            public(openapi),
            Surface.API,
            "This document",
            answers={200: ("OpenAPI 3.1.", dict)},
        ),
        Route("GET", "/docs/api", public(readable), Surface.PAGE, "The API, readable"),
    ]

    # Created on first request: it takes longer than the rest of the start-up.
    @cache
    def described() -> dict[str, Any]:
        return document(RouteTable([*documented, *own]), base_url)

    @cache
    def reading() -> dict[str, Any]:
        found = subjects(described())
        return {
            "subjects": found,
            "shapes": shapes(described()),
            "contents": [*((f"#{subject.anchor}", subject.title) for subject in found), ("#shapes", "Shapes")],
            "tokens": any(operation.needs_token for subject in found for operation in subject.operations),
        }

    return own
