"""A list that is short enough to be read whole, cut into pages for the eye: "Newer" and "Older"."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from hubgate.server.errors import NotFound
from hubgate.server.http.request import HubRequest

T = TypeVar("T")

ROWS = 50


@dataclass(frozen=True)
class Shown(Generic[T]):
    items: Sequence[T]
    total: int
    # Queries that lead there; empty at either end.
    newer: str
    older: str


def shown_of(request: HubRequest, rows: Sequence[T]) -> Shown[T]:
    """The page that `?page=` asks for."""
    asked = request.query().get("page", "1") if request.method != "POST" else "1"
    last = max(1, -(-len(rows) // ROWS))
    if not (asked.isascii() and asked.isdigit()) or not 1 <= int(asked[:9]) <= last:
        raise NotFound("The list has no such page.")
    number = int(asked)
    return Shown(
        rows[(number - 1) * ROWS : number * ROWS],
        len(rows),
        f"?page={number - 1}" if number > 1 else "",
        f"?page={number + 1}" if number < last else "",
    )
