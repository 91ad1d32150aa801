"""Long lists on pages: one page of rows at a time, and the address of the next."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from hubgate.server.paging import PageRequest, decode_cursor

ROWS = 50


class Asked:
    """Which rows of a list the address asks for: the words searched and where to go on."""

    def __init__(self, query: Mapping[str, str], path: str) -> None:
        self._cursor, self._path = query.get("cursor"), path
        self.search = query.get("search", "").strip()
        self.kept = {"search": self.search} if self.search else {}

    def page(self, shape: tuple[type, ...]) -> PageRequest:
        return PageRequest(ROWS, decode_cursor(self._cursor, shape) if self._cursor else None)

    def shown(self, next_cursor: str | None) -> dict[str, Any]:
        """What templates/parts/listing.html wants to know."""
        later, following = bool(self._cursor), address(self._path, next_cursor, self.kept)
        return {"search": self.search, "later": later, "next": following}


def address(path: str, cursor: str | None, kept: Mapping[str, str], parameter: str = "cursor") -> str:
    """Of the next page, with the search that is kept; nothing after the last."""
    return f"{path}?{urlencode({**kept, parameter: cursor})}" if cursor else ""
