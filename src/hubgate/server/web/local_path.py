"""Where a form may send the browser next: an address of this hub, or home."""

import re
from urllib.parse import urlencode

# One leading slash, then nothing that a browser reads as a host: neither `//evil`, nor `/\evil`, nor a control
# character it would drop before looking again.
_LOCAL = re.compile(r"/(?![/\\])[^\x00-\x20\x7f\\]*\Z")


def local_path(given: str) -> str:
    return given if _LOCAL.match(given) and given.isascii() else "/"


def going_on(path: str, next_page: str) -> str:
    """A page of ours that leads to another."""
    return path if next_page == "/" else f"{path}{'&' if '?' in path else '?'}{urlencode({'next': next_page})}"
