"""How codes, tokens and consents name the servers they are for. Pure.

Each server is named by its URI. If the server is registered here (resource_servers/), `#` and the id of the
registration follow: a URI in a request cannot have a fragment, and access that was granted to one registration is not
valid for a later one of the same URI. Several names are separated by spaces; an empty text means this hub.
"""

import re
from collections.abc import Collection, Sequence
from urllib.parse import SplitResult, urlsplit

from hubgate.server.oauth.redirects import LOOPBACK, host_of, is_web, split_address

_DEFAULT_PORTS = {"http": ":80", "https": ":443"}
_ID_MARK = "#"
_INVALID_ESCAPE = re.compile("%(?![0-9A-Fa-f]{2})")


def canonical(uri: str) -> str:
    """The URI as it is compared: clients differ in case, default port and the slash of an empty path (RFC 3986,
    section 6.2.2 and 6.2.3). Only for web addresses; a path and a query stay as they are.
    """
    if not is_web(uri):
        return uri
    parts = urlsplit(uri)
    host = parts.netloc.lower().removesuffix(_DEFAULT_PORTS[parts.scheme])
    return SplitResult(parts.scheme, host, parts.path or "/", parts.query, "").geturl()


def is_local(uri: str) -> bool:
    """Whether the server runs on the user's own computer, where everyone else's may run another."""
    parts = split_address(uri)
    return parts is not None and parts.scheme in ("http", "https") and host_of(parts) in LOOPBACK


def has_invalid_escape(uri: str) -> bool:
    """Whether a % is not followed by two hexadecimal digits (RFC 3986, section 2.1): clients reject such a URI."""
    return _INVALID_ESCAPE.search(uri) is not None


def with_registration(uri: str, registration: str) -> str:
    """The name of a registered server in codes, tokens and consents."""
    return f"{uri}{_ID_MARK}{registration}"


def uri_of(name: str) -> str:
    return name.partition(_ID_MARK)[0]


def registration_of(name: str) -> str:
    """The id of the registration; empty for a server that was not registered."""
    return name.partition(_ID_MARK)[2]


def needs_one(names: Collection[str]) -> bool:
    """Whether a token for these servers would mix the scopes of a registered server with those of others."""
    return len(names) > 1 and any(map(registration_of, names))


def shown_servers(names: Sequence[str], base_url: str) -> tuple[str, ...]:
    """The servers as the consent page names them: the host, or the full URI if it is not http(s) or is on this hub."""
    return tuple(dict.fromkeys(shown_server(name, base_url) for name in names))


def shown_server(name: str, base_url: str) -> str:
    uri, own_host = uri_of(name), urlsplit(base_url).netloc.lower()
    host = urlsplit(uri).netloc.lower()
    return host if is_web(uri) and host != own_host else uri
