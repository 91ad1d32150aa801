"""Range requests for files (RFC 9110, section 14). Several ranges get the whole file, as the RFC allows."""

import re
from dataclasses import dataclass

_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})\Z", re.IGNORECASE | re.ASCII)
_ETAG = re.compile(r'(?:W/)?("[^"]*")')


@dataclass(frozen=True, slots=True)
class Span:
    """The bytes from `start` up to, but not including, `end`."""

    start: int
    end: int

    @property
    def length(self) -> int:
        return self.end - self.start


class OutOfRange(Exception):
    pass


def is_known(if_none_match: str | None, etag: str) -> bool:
    """Whether the client already has this version (RFC 9110, section 13.1.2)."""
    if if_none_match is None:
        return False
    return if_none_match.strip() == "*" or etag in _ETAG.findall(if_none_match)


def is_another(if_match: str | None, etag: str) -> bool:
    """Whether the client asks for a version that no longer exists (RFC 9110, section 13.1.1: weak tags never match)."""
    if if_match is None or if_match.strip() == "*":
        return False
    return etag not in [given.strip() for given in if_match.split(",")]


def requested_span(header: str | None, if_range: str | None, etag: str, size: int) -> Span | None:
    """Return the requested range, or None for the whole file."""
    if header is None or (if_range is not None and if_range.strip() != etag):
        return None
    match = _RANGE.match(header.replace(" ", ""))
    if match is None or not (match[1] or match[2]):
        return None
    if not match[1]:
        start, end = max(size - int(match[2]), 0), size
        if not int(match[2]):
            raise OutOfRange
    else:
        start = int(match[1])
        end = min(int(match[2]) + 1, size) if match[2] else size
        if match[2] and int(match[2]) < start:
            return None
    if start >= size:
        raise OutOfRange
    return Span(start, end)
