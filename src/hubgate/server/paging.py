"""Keyset paging: opaque cursors, and the `Link` header that existing clients follow.

A cursor contains the sort key of the last row shown, not an offset: if rows are added or removed between two pages, no
other row is repeated or skipped. Cursors are not secret and not trusted: stores bind their parts as values.
"""

import base64
import json
import re
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar
from urllib.parse import quote, urlencode

from msgspec import Struct

from hubgate.server.errors import BadRequest

T = TypeVar("T")
Key = tuple[int | str, ...]

DEFAULT_LIMIT = 100
MAX_LIMIT = 1000


class PageRequest(Struct, frozen=True):
    limit: int = DEFAULT_LIMIT
    after: Key | None = None

    @property
    def fetch_limit(self) -> int:
        """How many rows to fetch: one more than shown, so that the last page is recognized without a count."""
        return self.limit + 1

    def last_shown(self, default: str = "") -> str:
        """The last key shown, for a list sorted by one text column; `default` on the first page."""
        return str(self.after[0]) if self.after else default


class Page(Struct, Generic[T], frozen=True):
    items: list[T]
    next_cursor: str | None


def page_of(rows: Sequence[T], request: PageRequest, key: Callable[[T], Key]) -> Page[T]:
    """Cut the rows that a store fetched with `request.fetch_limit` down to one page."""
    shown = list(rows[: request.limit])
    more = len(rows) > request.limit
    return Page(shown, encode_cursor(key(shown[-1])) if more else None)


def encode_cursor(key: Key) -> str:
    return base64.urlsafe_b64encode(json.dumps(key, separators=(",", ":")).encode()).rstrip(b"=").decode()


def decode_cursor(text: str, shape: tuple[type, ...]) -> Key:
    """The sort key in a cursor; `shape` gives the type of each part."""
    try:
        parts = json.loads(base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True))
    except (ValueError, RecursionError):
        parts = None
    if not isinstance(parts, list) or len(parts) != len(shape):
        raise BadRequest("This cursor is invalid. Start again from the first page.")
    for part, kind in zip(parts, shape, strict=True):
        if type(part) is not kind or not _fits_column(part):
            raise BadRequest("This cursor is invalid. Start again from the first page.")
    return tuple(parts)


def _fits_column(part: object) -> bool:
    if isinstance(part, int):
        return abs(part) < 2**63
    # JSON can express NUL and lone surrogates; databases reject both.
    return isinstance(part, str) and re.search("[\0\ud800-\udfff]", part) is None


def parse_page(query: dict[str, str], shape: tuple[type, ...], default: int = DEFAULT_LIMIT) -> PageRequest:
    """Parse `limit` and `cursor` of a list request. Existing clients expect a limit above the maximum to be lowered."""
    limit = query.get("limit", str(default))
    if not limit.isascii() or not limit.isdigit() or int(limit[:9]) < 1:
        raise BadRequest("limit must be a whole number of at least 1.")
    cursor = query.get("cursor")
    after = decode_cursor(cursor, shape) if cursor else None
    return PageRequest(min(int(limit[:9]), MAX_LIMIT), after)


def next_link(
    base_url: str, raw_path: bytes, query: Sequence[tuple[str, str]], cursor: str, parameter: str = "cursor"
) -> str:
    """A `Link` header for the strictest clients: absolute, a space after `;`, double quotes, all parameters.

    The path must be the raw one: decoding would lose an encoded slash, and a decoded `>` would end the address early.
    """
    other_parameters = [(name, value) for name, value in query if name != parameter]
    path = quote(raw_path, safe="/%:@!$&'()*+,;=-._~")
    return f'<{base_url}{path}?{urlencode([*other_parameters, (parameter, cursor)])}>; rel="next"'
