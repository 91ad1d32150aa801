"""Where an app may be answered: which redirect URIs can be registered, and which of a request's match them. Pure."""

import re
from collections.abc import Iterable
from urllib.parse import SplitResult, unquote_plus, urlsplit

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
# A loopback address up to its path, the port apart; and the origin of an address, as it is written.
_HERE = re.compile(r"(http://(?:localhost|127\.0\.0\.1|\[::1\]))(?::([0-9]{1,5}))?(?=[/?]|\Z)", re.IGNORECASE)
_ORIGIN = re.compile(r"https?://[^/?#]+", re.IGNORECASE)
_OF_ANSWERS = frozenset({"code", "state", "iss", "error", "error_description", "error_uri"})


def check_redirect_uri(uri: str) -> str:
    """What may be registered (attack O5)."""
    if len(uri) > LONGEST:
        raise Unprocessable(f"A redirect URI has at most {LONGEST:,} characters.")
    parts = split_address(uri)
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
    """To the letter, but for a loopback port: what is compared by its parts is matched in spellings nobody wrote."""
    if registered == given:
        return True
    ours, theirs = _HERE.match(registered), _HERE.match(given)
    if ours is None or theirs is None or not _is_port(theirs.group(2)):
        return False
    return (ours.group(1), registered[ours.end() :]) == (theirs.group(1), given[theirs.end() :])


def _is_port(text: str | None) -> bool:
    return text is None or (text == str(int(text)) and 0 < int(text) < 65536)


def _has_origin(registered: str, given: str) -> bool:
    ours, theirs = _ORIGIN.match(registered), _ORIGIN.match(given)
    if ours is None or theirs is None or ours.group() != theirs.group():
        return False
    return split_address(given) is not None and "#" not in given and not answer_in(given)


def answer_in(uri: str) -> str:
    """The name of a parameter in its query that only our answer has; empty if there is none.

    Where the query is the asker's to choose, they could give the app a code of their own ahead of ours.
    """
    for part in re.split("[&;]", uri.partition("?")[2]):
        # As lenient as any app may be: `code[]` is a list called code to some.
        name = unquote_plus(part.partition("=")[0]).partition("[")[0].strip().lower()
        if name in _OF_ANSWERS:
            return name
    return ""


def host_of(parts: SplitResult) -> str | None:
    """The host as written, in brackets if IPv6; None where the authority is anything but host and port."""
    found = re.fullmatch(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._~-]+)(?::[0-9]{1,5})?", parts.netloc)
    return found.group(1).lower() if found else None


def lacks_scheme(uri: str) -> bool:
    """Whether it begins with a host and a port, which `urlsplit` would take for a scheme."""
    return _HOST_AND_PORT.match(uri) is not None


def is_loopback(uri: str) -> bool:
    parts = split_address(uri)
    return parts is not None and parts.scheme == "http" and host_of(parts) in LOOPBACK


def is_web(uri: str) -> bool:
    """http or https, rather than a scheme some app on a device claims."""
    parts = split_address(uri)
    return parts is not None and parts.scheme in ("http", "https")


def shown_host(uri: str) -> str:
    """How consent names where the answer goes; never clipped."""
    parts = split_address(uri)
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


def split_address(uri: str) -> SplitResult | None:
    """Its parts; None for what parsers may disagree about."""
    if not _CLEAN.match(uri):
        return None
    try:
        parts = urlsplit(uri)
        _ = parts.port
    except ValueError:
        return None
    return parts
