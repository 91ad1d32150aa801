"""The OpenAPI document, the index of the API reference and its pages, and the search of the documentation, which finds
operations too.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

from msgspec import Struct

from hubgate.server.edge.openapi import document
from hubgate.server.edge.routes import PublicHandler, Route, public
from hubgate.server.edge.table import RouteTable
from hubgate.server.errors import NotFound
from hubgate.server.http.render import JsonResponse
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.http.surface import Surface
from hubgate.server.hub.git.threads import in_text_thread
from hubgate.server.web.pages.api_reference.examples import Document
from hubgate.server.web.pages.api_reference.operations import Shape, shapes, shapes_used_by
from hubgate.server.web.pages.api_reference.subjects import ApiSubject, search_entries, subjects
from hubgate.server.web.pages.docs.navigation import SEARCH, sections
from hubgate.server.web.pages.docs.searching import LONGEST_QUERY, DocMatch, Entry, find, section_entries
from hubgate.server.web.rendering import Pages

_INDEX = "/docs/api"


class Reference(Struct, frozen=True):
    """The values of all pages. `entries` are for the search; `shapes` lists every shape with the address of the first
    page that shows it.
    """

    subjects: list[ApiSubject]
    entries: tuple[Entry, ...]
    shapes: list[tuple[str, Shape]]
    contents: list[tuple[str, str]]
    by_slug: dict[str, dict[str, Any]]


def routes(pages: Pages, base_url: str, documented: Sequence[Route]) -> list[Route]:
    async def openapi(_: HubRequest) -> JsonResponse:
        return JsonResponse(openapi_document(), headers={"cache-control": "public, max-age=300"})

    async def index(request: HubRequest) -> Response:
        found = reference()
        return pages.page(
            request, "docs/api.html", subjects=found.subjects, shapes=found.shapes, contents=found.contents
        )

    async def subject(request: HubRequest) -> Response:
        found = reference()
        values = found.by_slug.get(request.param("subject"))
        if values is None:
            raise NotFound("The API reference has no such subject.")
        return pages.page(request, "docs/api_subject.html", contents=found.contents, **values)

    async def search(request: HubRequest) -> Response:
        query = request.query().get("q", "")[:LONGEST_QUERY]

        def found() -> list[DocMatch]:
            return find(query, [*section_entries(base_url), *reference().entries])

        # In a thread: the first search renders all pages.
        matches = await in_text_thread(found)
        return pages.page(request, "docs/search.html", query=query, found=matches, sections=sections(), current=None)

    # Created on first request: creating it takes longer than the rest of the start-up.
    @cache
    def openapi_document() -> dict[str, Any]:
        # Without these routes' own handlers, which refer to the document: all routes would be part of a reference
        # cycle, and only a garbage collection would free a closed hub.
        own = _routes(_no_handler, _no_handler, _no_handler, _no_handler)
        return document(RouteTable([*documented, *own]), base_url)

    @cache
    def reference() -> Reference:
        return read_reference(openapi_document())

    return _routes(openapi, index, subject, search)


def _routes(openapi: PublicHandler, index: PublicHandler, subject: PublicHandler, search: PublicHandler) -> list[Route]:
    return [
        Route(
            "GET",
            "/api/openapi.json",
            public(openapi),
            Surface.API,
            "The OpenAPI document",
            answers={200: ("OpenAPI 3.1.", dict)},
        ),
        Route("GET", _INDEX, public(index), Surface.PAGE, "API reference"),
        Route("GET", f"{_INDEX}/{{subject}}", public(subject), Surface.PAGE, "A subject of the API reference"),
        Route("GET", SEARCH, public(search), Surface.PAGE, "Search in the documentation"),
    ]


async def _no_handler(_: HubRequest) -> Response:
    """Stands for a handler in the document, which describes none."""
    raise NotFound("This handler is never called.")


def read_reference(openapi_document: Document) -> Reference:
    found, all_shapes = subjects(openapi_document), shapes(openapi_document)
    used = [shapes_used_by(subject.operations, all_shapes) for subject in found]
    first_page: dict[str, tuple[str, Shape]] = {}
    entries: dict[tuple[str, str], Entry] = {}
    for subject, own_shapes in zip(found, used, strict=True):
        # A shape is found once, on the first page that shows it.
        for entry in search_entries(subject, own_shapes):
            entries.setdefault((entry.page, entry.heading), entry)
        for shape in own_shapes:
            first_page.setdefault(shape.name, (subject.address, shape))
    return Reference(
        subjects=found,
        entries=tuple(entries.values()),
        shapes=[entry for _, entry in sorted(first_page.items())],
        contents=[(_INDEX, "All operations"), *((subject.address, subject.title) for subject in found)],
        by_slug={
            subject.slug: {"subject": subject, "shapes": own_shapes, "previous": previous, "next": following}
            for subject, own_shapes, previous, following in zip(
                found, used, [None, *found[:-1]], [*found[1:], None], strict=True
            )
        },
    )
