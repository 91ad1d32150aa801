"""Long lists on pages: one page of rows at a time, and the address of the next."""

from collections.abc import Mapping
from urllib.parse import urlencode

from hubgate.server.paging import PageRequest, decode_cursor

ROWS = 50


def asked_page(query: Mapping[str, str], shape: tuple[type, ...]) -> PageRequest:
    cursor = query.get("cursor")
    return PageRequest(ROWS, decode_cursor(cursor, shape) if cursor else None)


def address(path: str, cursor: str | None, kept: Mapping[str, str], parameter: str = "cursor") -> str:
    """Of the next page, with the search that is kept; nothing after the last."""
    return f"{path}?{urlencode({**kept, parameter: cursor})}" if cursor else ""
