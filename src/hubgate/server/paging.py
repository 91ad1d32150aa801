"""Keyset paging: opaque cursors, and the `Link` header that existing clients follow.

A cursor holds the sort key of the last row shown, never an offset: rows added or removed meanwhile neither repeat
nor hide others. It is neither secret nor trusted: stores bind its parts as values.
"""

import base64
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar
from urllib.parse import quote, urlencode

from hubgate.server.errors import BadRequest

T = TypeVar("T")
Key = tuple[int | str, ...]

DEFAULT_LIMIT = 100
MAX_LIMIT = 1000


@dataclass(frozen=True)
class PageRequest:
    limit: int = DEFAULT_LIMIT
    after: Key | None = None

    @property
    def fetch(self) -> int:
        """One row more than shown, so that the last page is known without counting."""
        return self.limit + 1

    def last_shown(self, otherwise: str = "") -> str:
        """Where a list goes on that is sorted by one text; `otherwise` on its first page."""
        return str(self.after[0]) if self.after else otherwise


@dataclass(frozen=True)
class Page(Generic[T]):
    items: list[T]
    next_cursor: str | None


def page_of(rows: Sequence[T], request: PageRequest, key: Callable[[T], Key]) -> Page[T]:
    """Cut what a store fetched with `request.fetch` down to one page."""
    shown = list(rows[: request.limit])
    more = len(rows) > request.limit
    return Page(shown, encode_cursor(key(shown[-1])) if more else None)


def encode_cursor(key: Key) -> str:
    return base64.urlsafe_b64encode(json.dumps(key, separators=(",", ":")).encode()).rstrip(b"=").decode()


def decode_cursor(text: str, shape: tuple[type, ...]) -> Key:
    """The key a cursor stands for; `shape` gives the type of each part."""
    try:
        parts = json.loads(base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True))
    except (ValueError, RecursionError):
        parts = None
    if not isinstance(parts, list) or len(parts) != len(shape):
        raise BadRequest("This cursor was not made here. Start again from the first page.")
    for part, kind in zip(parts, shape, strict=True):
        if type(part) is not kind or not _fits_column(part):
            raise BadRequest("This cursor was not made here. Start again from the first page.")
    return tuple(parts)


def _fits_column(part: object) -> bool:
    if isinstance(part, int):
        return abs(part) < 2**63
    # JSON can spell a NUL and half a surrogate pair; no database takes them.
    return isinstance(part, str) and re.search("[\0\ud800-\udfff]", part) is None


def parse_page(query: dict[str, str], shape: tuple[type, ...], default: int = DEFAULT_LIMIT) -> PageRequest:
    """`limit` and `cursor` of a listing. A limit beyond the cap is capped, as existing clients expect."""
    limit = query.get("limit", str(default))
    if not limit.isascii() or not limit.isdigit() or int(limit[:9]) < 1:
        raise BadRequest("limit must be a whole number from 1.")
    cursor = query.get("cursor")
    after = decode_cursor(cursor, shape) if cursor else None
    return PageRequest(min(int(limit[:9]), MAX_LIMIT), after)


def next_link(
    base_url: str, raw_path: bytes, query: Sequence[tuple[str, str]], cursor: str, parameter: str = "cursor"
) -> str:
    """A `Link` header as the strictest client parses it: absolute, a space after `;`, double quotes, all parameters.

    The path as it was sent: decoded, an encoded slash would be lost and a `>` would end the address early.
    """
    kept = [(name, value) for name, value in query if name != parameter]
    path = quote(raw_path, safe="/%:@!$&'()*+,;=-._~")
    return f'<{base_url}{path}?{urlencode([*kept, (parameter, cursor)])}>; rel="next"'
