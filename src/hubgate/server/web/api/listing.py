"""One page of a list as JSON, with a `Link` header to the next page."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from hubgate.server.edge.routes import Query
from hubgate.server.http.render import JsonResponse
from hubgate.server.http.request import HubRequest
from hubgate.server.paging import DEFAULT_LIMIT, MAX_LIMIT, Page, next_link

T = TypeVar("T")

PAGING = (
    Query(
        "limit",
        f"Results per page: {DEFAULT_LIMIT} by default, at most {MAX_LIMIT:,}.",
        {"type": "integer", "minimum": 1},
    ),
    Query("cursor", "From the Link header of the previous page."),
)


def page_response(request: HubRequest, base_url: str, page: Page[T], render: Callable[[T], object]) -> JsonResponse:
    """Respond with the items of a page, each rendered with `render`."""
    return linked_response(request, base_url, [render(item) for item in page.items], page.next_cursor)


def linked_response(request: HubRequest, base_url: str, items: Sequence[object], cursor: str | None) -> JsonResponse:
    """Respond with items that are already rendered, and a Link header if there is a cursor."""
    response = JsonResponse(items)
    if cursor is not None:
        pairs = request.query_fields().pairs
        response.headers["link"] = next_link(base_url, request.scope["raw_path"], pairs, cursor)
    return response
