"""Long lists on pages: one page of rows at a time, links to the other pages, and the link back after a form."""

from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar
from urllib.parse import urlencode

from msgspec import Struct

from hubgate.server.errors import NotFound
from hubgate.server.http.request import HubRequest
from hubgate.server.paging import PageRequest, decode_cursor
from hubgate.server.web.local_path import local_path

T = TypeVar("T")

ROWS = 50
NO_PARAMETERS: Mapping[str, str] = {}


class ListQuery:
    """The part of a list that an address requests: the search text, and the cursor in `parameter`. The links to the
    other pages repeat `other_parameters`.
    """

    def __init__(
        self,
        query: Mapping[str, str],
        path: str,
        parameter: str = "cursor",
        other_parameters: Mapping[str, str] = NO_PARAMETERS,
    ) -> None:
        self._cursor, self._path, self._parameter = query.get(parameter), path, parameter
        self._other_parameters = other_parameters
        self.search = query.get("search", "").strip()

    def page(self, shape: tuple[type, ...], rows: int = ROWS) -> PageRequest:
        return PageRequest(rows, decode_cursor(self._cursor, shape) if self._cursor else None)

    def template_values(self, next_cursor: str | None) -> dict[str, Any]:
        """Values for templates/parts/listing.html; an address is empty if there is no such page."""
        first = self._address(None) if self._cursor else ""
        return {"search": self.search, "first": first, "next": self._address(next_cursor) if next_cursor else ""}

    def _address(self, cursor: str | None) -> str:
        parameters = {"search": self.search, **self._other_parameters, self._parameter: cursor}
        query = urlencode({name: value for name, value in parameters.items() if value})
        return f"{self._path}?{query}" if query else self._path


def return_address(request: HubRequest, page: str) -> str:
    """Return the address to redirect to after a form: its `back` field, if that is a page of the list, or the list."""
    back = local_path(request.form_fields.get("back"))
    return back if back.startswith(f"{page}?") else page


def first_rows(rows: Sequence[T]) -> tuple[Sequence[T], int]:
    """Return the first page of rows, and the number of further rows."""
    return rows[:ROWS], max(0, len(rows) - ROWS)


class ListPage(Struct, Generic[T], frozen=True):
    """One page of a list whose rows are all in memory."""

    items: Sequence[T]
    total: int
    # Queries of the adjacent pages; empty at either end.
    previous: str
    next: str


def list_page(request: HubRequest, rows: Sequence[T]) -> ListPage[T]:
    """Return the page that `?page=` requests."""
    # The response to a POST may show a new secret, once only: an invalid page number must not make it fail.
    page = request.query().get("page", "1") if request.method != "POST" else "1"
    last = max(1, -(-len(rows) // ROWS))
    # Python does not parse numbers with thousands of digits.
    number = int(page) if page.isascii() and page.isdigit() and len(page) < 10 else 0
    if not 1 <= number <= last:
        raise NotFound("Page not found. The list has fewer pages.")
    return ListPage(
        rows[(number - 1) * ROWS : number * ROWS],
        len(rows),
        f"?page={number - 1}" if number > 1 else "",
        f"?page={number + 1}" if number < last else "",
    )
