"""Marks the differences between two texts; URIs are compared part by part. Pure."""

import re
from collections.abc import Iterable, Sequence

from hubgate.server.oauth.redirects import LOOPBACK

# A piece of text, and whether it differs.
Part = tuple[str, bool]
Text = tuple[Part, ...]

# Scheme, host, port, path, query. Joining the groups gives the input, for any input.
_ADDRESS = re.compile(r"([^:/?#]*:/?/?|)(?:(?<=//)(\[[^/?#\]]*\]|[^/?#:]*)(:[0-9]*)?)?([^?#]*)(.*)", re.DOTALL)
_SCHEME, _HOST, _PORT = 0, 1, 2


def as_text(text: str, *, marked: bool = False) -> Text:
    return ((text, marked),)


def nearest(registered: Sequence[str], given: str) -> str:
    """The registered URI that was probably meant; the same host counts more than the same path."""
    return max(registered, key=lambda uri: _similarity(_parts(uri), _parts(given)))


def difference(given: str, meant: str, *, any_path: bool) -> tuple[Text, Text]:
    """Both URIs with differences marked. Loopback ports may differ and, with `any_path`, everything after the port."""
    given_parts, meant_parts = _parts(given), _parts(meant)
    free = {_PORT} if _is_loopback(given_parts) and _is_loopback(meant_parts) else set()
    compared = [
        (as_text(one), as_text(other)) if at in free or (any_path and at > _PORT) else _mark_difference(one, other)
        for at, (one, other) in enumerate(zip(given_parts, meant_parts, strict=True))
    ]
    return _join(one for one, _ in compared), _join(other for _, other in compared)


def _parts(uri: str) -> list[str]:
    found = _ADDRESS.fullmatch(uri)
    return [part or "" for part in found.groups()] if found else [uri, "", "", "", ""]


def _is_loopback(parts: list[str]) -> bool:
    return parts[_SCHEME] == "http://" and parts[_HOST] in LOOPBACK


def _similarity(one: list[str], other: list[str]) -> tuple[bool, bool, bool, int]:
    same_host = one[_HOST] == other[_HOST]
    both_loopback = _is_loopback(one) and _is_loopback(other)
    return (
        same_host,
        both_loopback,
        one[_SCHEME] == other[_SCHEME],
        _common_prefix("".join(one[3:]), "".join(other[3:])),
    )


def _mark_difference(one: str, other: str) -> tuple[Text, Text]:
    """Mark the text between the common prefix and the common suffix."""
    begin = _common_prefix(one, other)
    rest = min(len(one), len(other)) - begin
    end = min(_common_prefix(one[::-1], other[::-1]), rest)
    return _mark_middle(one, begin, end), _mark_middle(other, begin, end)


def _common_prefix(one: str, other: str) -> int:
    """The length of the common prefix."""
    pairs = zip(one, other, strict=False)
    return next((at for at, (left, right) in enumerate(pairs) if left != right), min(len(one), len(other)))


def _mark_middle(text: str, begin: int, end: int) -> Text:
    stop = len(text) - end
    return (text[:begin], False), (text[begin:stop], True), (text[stop:], False)


def _join(texts: Iterable[Text]) -> Text:
    joined: list[Part] = []
    for piece, marked in (part for text in texts for part in text if part[0]):
        if joined and joined[-1][1] is marked:
            joined[-1] = (joined[-1][0] + piece, marked)
        else:
            joined.append((piece, marked))
    return tuple(joined)
