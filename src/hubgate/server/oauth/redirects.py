"""Redirect URIs: which can be registered, and whether the URI in a request matches a registered one. Pure."""

import re
from collections.abc import Iterable
from urllib.parse import SplitResult, unquote_plus, urlsplit

from hubgate.server.errors import Unprocessable

LONGEST_REDIRECT_URI = 2000
EXACT, ORIGIN = "exact", "origin"
MATCH_MODES = (EXACT, ORIGIN)

LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
# Schemes that a browser executes, displays or passes to something other than an app.
_FORBIDDEN_SCHEMES = frozenset(
    """
    about blob chrome chrome-extension data file filesystem ftp intent jar javascript mailto moz-extension
    ms-browser-extension resource sms tel vbscript view-source ws wss
    """.split()  # noqa: SIM905
)
# Printable ASCII without characters that parsers disagree about: quotes, angle brackets, backslash (attack O2).
_SAFE = re.compile(r"[!#-;=?-\[\]_a-z~]+\Z")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*\Z")
# A host and port without a scheme: `localhost:5000/cb` would be parsed as the scheme `localhost`.
_HOST_AND_PORT = re.compile(r"(localhost|\[[0-9a-f:.]+\]|[a-z0-9-]+(?:\.[a-z0-9-]+)+):[0-9]+(?:[/?]|\Z)", re.IGNORECASE)
# A loopback URI up to its path, with the port as a separate group; then the origin of a URI as written.
_LOOPBACK_URI = re.compile(r"(http://(?:localhost|127\.0\.0\.1|\[::1\]))(?::([0-9]{1,5}))?(?=[/?]|\Z)", re.IGNORECASE)
_ORIGIN = re.compile(r"https?://[^/?#]+", re.IGNORECASE)
_RESPONSE_PARAMETERS = frozenset({"code", "state", "iss", "error", "error_description", "error_uri"})


def check_redirect_uri(uri: str) -> str:
    """Return the URI if an app may register it, or raise Unprocessable (attack O5)."""
    if len(uri) > LONGEST_REDIRECT_URI:
        raise Unprocessable(f"A redirect URI may have at most {LONGEST_REDIRECT_URI:,} characters.")
    parts = split_address(uri)
    if parts is not None and (found := _HOST_AND_PORT.match(uri)):
        scheme = "http" if found.group(1).lower() in LOOPBACK else "https"
        raise Unprocessable(f"{uri[:80]} has no scheme. Write {scheme}://{uri[:80]}.")
    if parts is None or not parts.scheme:
        raise Unprocessable(f"{uri[:80]} is not an address such as https://app.example/callback.")
    if "#" in uri:
        raise Unprocessable(f"{uri[:80]} has a fragment, which never reaches the app. Remove it.")
    if parts.scheme in _FORBIDDEN_SCHEMES or not _SCHEME.match(parts.scheme):
        raise Unprocessable(f"A redirect URI cannot use the scheme {parts.scheme}.")
    if parts.scheme == "http" and host_of(parts) not in LOOPBACK:
        raise Unprocessable(f"{uri[:80]} is plain http. Use https; http is for localhost, 127.0.0.1 and [::1].")
    if parts.scheme in ("http", "https"):
        if not parts.netloc or "@" in parts.netloc or host_of(parts) is None:
            raise Unprocessable(f"{uri[:80]} has no valid host.")
    elif parts.netloc and "@" in parts.netloc:
        raise Unprocessable(f"{uri[:80]} contains a user name.")
    return uri


def matches(registered: Iterable[str], given: str, match: str = EXACT) -> bool:
    """Whether the app registered this URI. Any loopback port matches: a native app uses any free port (RFC 8252)."""
    return any(_is_same(uri, given) or (match == ORIGIN and _has_same_origin(uri, given)) for uri in registered)


def _is_same(registered: str, given: str) -> bool:
    """Compare as strings, except for a loopback port: comparing parsed parts would accept other spellings."""
    if registered == given:
        return True
    ours, theirs = _LOOPBACK_URI.match(registered), _LOOPBACK_URI.match(given)
    if ours is None or theirs is None or not _is_port(theirs.group(2)):
        return False
    return (ours.group(1), registered[ours.end() :]) == (theirs.group(1), given[theirs.end() :])


def _is_port(text: str | None) -> bool:
    return text is None or (text == str(int(text)) and 0 < int(text) < 65536)


def _has_same_origin(registered: str, given: str) -> bool:
    ours, theirs = _ORIGIN.match(registered), _ORIGIN.match(given)
    if ours is None or theirs is None or ours.group() != theirs.group():
        return False
    return split_address(given) is not None and "#" not in given and not reserved_parameter_in(given)


def reserved_parameter_in(uri: str) -> str:
    """The first query parameter whose name is reserved for the response, such as `code`; empty if there is none.

    With origin matching the requester chooses the query, and could pass the app another code before the real one.
    """
    for part in re.split("[&;]", uri.partition("?")[2]):
        # As lenient as the most lenient app: some parse `code[]` as a list named code.
        name = unquote_plus(part.partition("=")[0]).partition("[")[0].strip().lower()
        if name in _RESPONSE_PARAMETERS:
            return name
    return ""


def host_of(parts: SplitResult) -> str | None:
    """The host in lower case, in brackets if IPv6; None if the authority is not just a host and optional port."""
    found = re.fullmatch(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._~-]+)(?::[0-9]{1,5})?", parts.netloc)
    return found.group(1).lower() if found else None


def lacks_scheme(uri: str) -> bool:
    """Whether the URI starts with host and port, where `urlsplit` would parse the host as a scheme."""
    return _HOST_AND_PORT.match(uri) is not None


def is_loopback(uri: str) -> bool:
    parts = split_address(uri)
    return parts is not None and parts.scheme == "http" and host_of(parts) in LOOPBACK


def is_web(uri: str) -> bool:
    """Whether the scheme is http or https, not a custom scheme of a native app."""
    parts = split_address(uri)
    return parts is not None and parts.scheme in ("http", "https")


def shown_host(uri: str) -> str:
    """The redirect target as the consent page names it; never shortened."""
    parts = split_address(uri)
    if parts is None:
        return uri
    if is_loopback(uri):
        return f"this computer ({host_of(parts)})"
    if not is_web(uri):
        return f"an app on this device ({parts.scheme})"
    return parts.netloc.lower()


def with_parameters(uri: str, query: str) -> str:
    """The redirect URI with `query` added, otherwise unchanged; only an empty path becomes `/`, as a client expects.

    Joining parsed parts would drop two slashes of `app:///path`.
    """
    base, _, existing = uri.partition("?")
    if is_web(uri) and "/" not in base.partition("://")[2]:
        base += "/"
    return f"{base}?{existing}&{query}" if existing else f"{base}?{query}"


def split_address(uri: str) -> SplitResult | None:
    """Parse a URI; None if parsers may disagree about it."""
    if not _SAFE.match(uri):
        return None
    try:
        parts = urlsplit(uri)
        _ = parts.port
    except ValueError:
        return None
    return parts
