"""Redirect targets of forms: a path on this hub, or `/`."""

import re
from urllib.parse import urlencode

# One leading slash, then nothing that a browser reads as a host: no `//evil`, no `/\evil`, and no control character,
# which browsers strip before they parse.
_LOCAL = re.compile(r"/(?![/\\])[^\x00-\x20\x7f\\]*\Z")


def local_path(path: str) -> str:
    return path if _LOCAL.match(path) and path.isascii() else "/"


def continue_to(path: str, next_page: str) -> str:
    """Return `path` with `next_page` as its `next` parameter."""
    return path if next_page == "/" else f"{path}{'&' if '?' in path else '?'}{urlencode({'next': next_page})}"
