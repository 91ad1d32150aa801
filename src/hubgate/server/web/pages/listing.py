"""Long lists on pages: one page of rows at a time, the addresses of the others, and the way back to one."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import urlencode

from hubgate.server.http.request import HubRequest
from hubgate.server.paging import PageRequest, decode_cursor
from hubgate.server.web.local_path import local_path

T = TypeVar("T")

ROWS = 50
NOTHING: Mapping[str, str] = {}


class Asked:
    """Which rows of a list the address asks for: the words searched, and in `parameter` where to go on. What else of
    the query decides about the list is `kept` in the addresses of its pages.
    """

    def __init__(
        self, query: Mapping[str, str], path: str, parameter: str = "cursor", kept: Mapping[str, str] = NOTHING
    ) -> None:
        self._cursor, self._path, self._parameter, self._kept = query.get(parameter), path, parameter, kept
        self.search = query.get("search", "").strip()

    def page(self, shape: tuple[type, ...], rows: int = ROWS) -> PageRequest:
        return PageRequest(rows, decode_cursor(self._cursor, shape) if self._cursor else None)

    def shown(self, next_cursor: str | None) -> dict[str, Any]:
        """What templates/parts/listing.html wants to know; an address is empty where it would lead nowhere."""
        first = self._address(None) if self._cursor else ""
        return {"search": self.search, "first": first, "next": self._address(next_cursor) if next_cursor else ""}

    def _address(self, cursor: str | None) -> str:
        given = {"search": self.search, **self._kept, self._parameter: cursor}
        query = urlencode({name: value for name, value in given.items() if value})
        return f"{self._path}?{query}" if query else self._path


def way_back(request: HubRequest, page: str) -> str:
    """The same page of the list that a form stood on, with its search, if the form said so."""
    given = local_path(request.form_fields.get("back"))
    return given if given.startswith(f"{page}?") else page


def first_of(rows: Sequence[T]) -> tuple[Sequence[T], int]:
    """As many as a page shows where the list is only looked at in passing, and how many more there are."""
    return rows[:ROWS], max(0, len(rows) - ROWS)
