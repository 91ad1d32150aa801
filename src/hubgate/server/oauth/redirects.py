"""Where an app may be answered: which redirect URIs can be registered, and which of a request's match them. Pure."""

import re
from collections.abc import Iterable
from urllib.parse import SplitResult, urlsplit

from hubgate.server.errors import Unprocessable

LONGEST = 2000
EXACT, ORIGIN = "exact", "origin"
MATCHES = (EXACT, ORIGIN)

LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
# Schemes that a browser runs, shows or hands to something other than an app.
_NO_APP = frozenset(
    """
    about blob chrome chrome-extension data file filesystem ftp intent jar javascript mailto moz-extension
    ms-browser-extension resource sms tel vbscript view-source ws wss
    """.split()  # noqa: SIM905
)
# Printable ASCII without quotes, angle brackets and the backslash, about which parsers disagree (attack O2).
_CLEAN = re.compile(r"[!#-;=?-\[\]_a-z~]+\Z")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*\Z")
# A host and its port, where the scheme was left out: `localhost:5000/cb` would be a scheme called localhost.
_HOST_AND_PORT = re.compile(r"(localhost|\[[0-9a-f:.]+\]|[a-z0-9-]+(?:\.[a-z0-9-]+)+):[0-9]+(?:[/?]|\Z)", re.IGNORECASE)


def check_redirect_uri(uri: str) -> str:
    """What may be registered (attack O5)."""
    if len(uri) > LONGEST:
        raise Unprocessable(f"A redirect URI has at most {LONGEST:,} characters.")
    parts = _split(uri)
    if parts is not None and (found := _HOST_AND_PORT.match(uri)):
        scheme = "http" if found.group(1).lower() in LOOPBACK else "https"
        raise Unprocessable(f"{uri[:80]} has no scheme. Write {scheme}://{uri[:80]}.")
    if parts is None or not parts.scheme:
        raise Unprocessable(f"{uri[:80]} is no address such as https://app.example/callback.")
    if "#" in uri:
        raise Unprocessable(f"{uri[:80]} has a fragment, which never reaches the app.")
    if parts.scheme in _NO_APP or not _SCHEME.match(parts.scheme):
        raise Unprocessable(f"{parts.scheme}: does not lead to an app.")
    if parts.scheme == "http" and host_of(parts) not in LOOPBACK:
        raise Unprocessable(f"{uri[:80]} is plain http. Use https; http is for localhost, 127.0.0.1 and [::1].")
    if parts.scheme in ("http", "https"):
        if not parts.netloc or "@" in parts.netloc or host_of(parts) is None:
            raise Unprocessable(f"{uri[:80]} has no plain host.")
    elif parts.netloc and "@" in parts.netloc:
        raise Unprocessable(f"{uri[:80]} holds a user name.")
    return uri


def matches(registered: Iterable[str], given: str, match: str = EXACT) -> bool:
    """Whether the app registered this address. Loopback ports are free: a native app takes any that is (RFC 8252)."""
    return any(_is_same(one, given) or (match == ORIGIN and _has_origin(one, given)) for one in registered)


def _is_same(registered: str, given: str) -> bool:
    if registered == given:
        return True
    ours, theirs = _split(registered), _split(given)
    if ours is None or theirs is None or ours.scheme != "http" or theirs.scheme != "http":
        return False
    if host_of(ours) not in LOOPBACK or host_of(ours) != host_of(theirs) or "#" in given:
        return False
    return ours._replace(netloc="") == theirs._replace(netloc="")


def _has_origin(registered: str, given: str) -> bool:
    ours, theirs = _split(registered), _split(given)
    if ours is None or theirs is None or "#" in given or ours.scheme not in ("http", "https"):
        return False
    return host_of(theirs) is not None and (ours.scheme, ours.netloc) == (theirs.scheme, theirs.netloc)


def host_of(parts: SplitResult) -> str | None:
    """The host as written, in brackets if IPv6; None where the authority is anything but host and port."""
    found = re.fullmatch(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._~-]+)(?::[0-9]{1,5})?", parts.netloc)
    return found.group(1).lower() if found else None


def is_loopback(uri: str) -> bool:
    parts = _split(uri)
    return parts is not None and parts.scheme == "http" and host_of(parts) in LOOPBACK


def is_web(uri: str) -> bool:
    """http or https, rather than a scheme some app on a device claims."""
    parts = _split(uri)
    return parts is not None and parts.scheme in ("http", "https")


def shown_host(uri: str) -> str:
    """How consent names where the answer goes; never clipped."""
    parts = _split(uri)
    if parts is None:
        return uri
    if is_loopback(uri):
        return f"this computer ({host_of(parts)})"
    if not is_web(uri):
        return f"an app on this device ({parts.scheme})"
    return parts.netloc.lower()


def with_parameters(uri: str, query: str) -> str:
    """The address of the answer: what was registered to the letter, but for an empty path, which becomes `/` as one
    client compares it so. (Taken apart and put together again, `app:///path` would lose two of its slashes.)"""
    base, _, before = uri.partition("?")
    if is_web(uri) and "/" not in base.partition("://")[2]:
        base += "/"
    return f"{base}?{before}&{query}" if before else f"{base}?{query}"


def _split(uri: str) -> SplitResult | None:
    if not _CLEAN.match(uri):
        return None
    try:
        parts = urlsplit(uri)
        _ = parts.port
    except ValueError:
        return None
    return parts
