"""A list that is read as a whole and displayed in pages."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from hubgate.server.errors import NotFound
from hubgate.server.http.request import HubRequest
from hubgate.server.web.pages.listing import ROWS

T = TypeVar("T")


@dataclass(frozen=True)
class Shown(Generic[T]):
    items: Sequence[T]
    total: int
    # Queries of the adjacent pages; empty at either end.
    back: str
    on: str


def shown_of(request: HubRequest, rows: Sequence[T]) -> Shown[T]:
    """Return the page that `?page=` requests."""
    # A new secret is shown only once, so an invalid page number must not fail that response.
    asked = request.query().get("page", "1") if request.method != "POST" else "1"
    last = max(1, -(-len(rows) // ROWS))
    # Python does not parse numbers with thousands of digits.
    number = int(asked) if asked.isascii() and asked.isdigit() and len(asked) < 10 else 0
    if not 1 <= number <= last:
        raise NotFound("The list has no such page.")
    return Shown(
        rows[(number - 1) * ROWS : number * ROWS],
        len(rows),
        f"?page={number - 1}" if number > 1 else "",
        f"?page={number + 1}" if number < last else "",
    )
