"""Resource indicators (RFC 8707): for which servers a token is requested. Pure.

A token is for this hub unless its request names other servers. They are stored with it in `resources`, separated by
spaces; empty means the hub.
"""

import re
from collections.abc import Sequence
from urllib.parse import urlsplit

from hubgate.server.oauth.errors import invalid_target
from hubgate.server.oauth.redirects import host_of, is_web, lacks_scheme, split_address

PARAMETER = "resource"
LONGEST = 2000
MOST = 10
WIDER = "resource names a server that was not authorized. Name some of those that were, or leave it out."
_BAD_ESCAPE = re.compile("%(?![0-9A-Fa-f]{2})")

# None where a request names nothing, and nothing for this hub.
Requested = tuple[str, ...] | None


def requested_resources(values: Sequence[str], base_url: str) -> Requested:
    """Raises invalid_target for what cannot be the identifier of a server, and for this hub together with others."""
    if not values:
        return None
    named = tuple(dict.fromkeys(values))
    if len(named) > MOST:
        raise invalid_target(f"resource names more than {MOST} servers.")
    for uri in named:
        _check(uri)
    others = tuple(uri for uri in named if uri not in (base_url, f"{base_url}/"))
    if others and len(others) < len(named):
        raise invalid_target("A token is for this hub or for other servers, not for both. Request one for each.")
    return others


def _check(uri: str) -> None:
    if len(uri) > LONGEST:
        raise invalid_target(f"resource has more than {LONGEST:,} characters.")
    parts = split_address(uri)
    if parts is None or not parts.scheme or lacks_scheme(uri) or _BAD_ESCAPE.search(uri):
        raise invalid_target("resource is an absolute URI such as https://mcp.example/mcp.")
    if "#" in uri:
        raise invalid_target("resource has a fragment. Leave it out.")
    if parts.scheme in ("http", "https") and host_of(parts) is None:
        raise invalid_target("resource has no plain host.")
    if not parts.netloc and not parts.path:
        raise invalid_target("resource names nothing after its scheme.")


def narrowed(authorized: str, requested: Requested) -> str | None:
    """For which servers a token is issued under what was authorized; None if the request wants others (section 2.2)."""
    if requested is None:
        return authorized
    within = set(requested) <= set(authorized.split()) if requested else not authorized
    return " ".join(requested) if within else None


def shown_servers(resources: Sequence[str], base_url: str) -> tuple[str, ...]:
    """How consent names them: by host, but whole where that is the hub's own, or there is none."""
    return tuple(dict.fromkeys(_shown(uri, urlsplit(base_url).netloc.lower()) for uri in resources))


def _shown(uri: str, own_host: str) -> str:
    host = urlsplit(uri).netloc.lower()
    return host if is_web(uri) and host != own_host else uri
