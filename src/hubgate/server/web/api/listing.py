"""One page of a list as JSON, and the `Link` header that leads to the next."""

from collections.abc import Callable
from typing import TypeVar

from hubgate.server.http.render import JsonResponse
from hubgate.server.http.request import HubRequest
from hubgate.server.http.routes import Query
from hubgate.server.paging import DEFAULT_LIMIT, MAX_LIMIT, Page, next_link

T = TypeVar("T")

PAGING = (
    Query(
        "limit",
        f"How many at once: {DEFAULT_LIMIT} unless said, {MAX_LIMIT:,} at most.",
        {"type": "integer", "minimum": 1},
    ),
    Query("cursor", "From the Link header of the page before."),
)


def listed(request: HubRequest, base_url: str, page: Page[T], render: Callable[[T], object]) -> JsonResponse:
    response = JsonResponse([render(item) for item in page.items])
    if page.next_cursor is not None:
        pairs = request.query_fields().pairs
        response.headers["link"] = next_link(base_url, request.scope["raw_path"], pairs, page.next_cursor)
    return response
