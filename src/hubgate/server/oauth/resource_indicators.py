"""Resource indicators (RFC 8707): the servers a token is requested for. Pure.

A token is for this hub unless its request names other servers. The names are stored with the token in `resources`,
separated by spaces; empty means this hub.
"""

import re
from collections.abc import Sequence
from urllib.parse import urlsplit

from hubgate.server.oauth.errors import invalid_target
from hubgate.server.oauth.redirects import host_of, is_web, lacks_scheme, split_address

PARAMETER = "resource"
LONGEST_RESOURCE = 2000
MAX_RESOURCES = 10
NOT_AUTHORIZED = "resource names a server that was not authorized. Name only authorized servers, or leave out resource."
_BAD_ESCAPE = re.compile("%(?![0-9A-Fa-f]{2})")

# None if the request has no `resource`; an empty tuple for this hub.
RequestedResources = tuple[str, ...] | None


def requested_resources(values: Sequence[str], base_url: str) -> RequestedResources:
    """Parse `resource` values; invalid_target if one cannot identify a server, or this hub is mixed with others."""
    if not values:
        return None
    named = tuple(dict.fromkeys(values))
    if len(named) > MAX_RESOURCES:
        raise invalid_target(f"resource names more than {MAX_RESOURCES} servers.")
    for uri in named:
        _check(uri)
    others = tuple(uri for uri in named if uri not in (base_url, f"{base_url}/"))
    if others and len(others) < len(named):
        raise invalid_target("A token is for this hub or for other servers, not for both. Request one for each.")
    return others


def _check(uri: str) -> None:
    if len(uri) > LONGEST_RESOURCE:
        raise invalid_target(f"resource has more than {LONGEST_RESOURCE:,} characters.")
    parts = split_address(uri)
    if parts is None or not parts.scheme or lacks_scheme(uri) or _BAD_ESCAPE.search(uri):
        raise invalid_target("resource must be an absolute URI such as https://mcp.example/mcp.")
    if "#" in uri:
        raise invalid_target("resource has a fragment. Leave out the fragment.")
    if parts.scheme in ("http", "https") and host_of(parts) is None:
        raise invalid_target("resource has no valid host.")
    if not parts.netloc and not parts.path:
        raise invalid_target("resource has only a scheme.")


def narrowed(authorized: str, requested: RequestedResources) -> str | None:
    """The servers to issue a token for; None if the request names a server that was not authorized (section 2.2)."""
    if requested is None:
        return authorized
    within = set(requested) <= set(authorized.split()) if requested else not authorized
    return " ".join(requested) if within else None


def shown_servers(resources: Sequence[str], base_url: str) -> tuple[str, ...]:
    """The servers as the consent page names them: the host, or the full URI if it is not http(s) or is on this hub."""
    return tuple(dict.fromkeys(_display_name(uri, urlsplit(base_url).netloc.lower()) for uri in resources))


def _display_name(uri: str, own_host: str) -> str:
    host = urlsplit(uri).netloc.lower()
    return host if is_web(uri) and host != own_host else uri
