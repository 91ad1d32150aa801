"""Resource indicators (RFC 8707): the servers a token is requested for. Pure.

A token is for this hub unless its request names other servers. Codes, tokens and consents name each server by its URI.
If the server is registered here (resource_servers/), `#` and the id of the registration follow: a URI in a request
cannot have a fragment, and access that was granted to one registration is not valid for a later one of the same URI.
Several names are separated by spaces; an empty text means this hub.
"""

import re
from collections.abc import Collection, Sequence
from urllib.parse import SplitResult, urlsplit

from hubgate.server.oauth.errors import invalid_target
from hubgate.server.oauth.redirects import LOOPBACK, host_of, is_web, lacks_scheme, split_address

PARAMETER = "resource"
LONGEST_RESOURCE = 2000
MAX_RESOURCES = 10
NOT_AUTHORIZED = "resource names a server that was not authorized. Name only authorized servers, or leave out resource."
NAME_ONE = "These servers get a token each. Name one of them in resource."
_BAD_ESCAPE = re.compile("%(?![0-9A-Fa-f]{2})")
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}
_ID_MARK = "#"

# None if the request has no `resource`; an empty tuple for this hub.
RequestedResources = tuple[str, ...] | None


def requested_resources(values: Sequence[str], base_url: str) -> RequestedResources:
    """Parse `resource` values; invalid_target if one cannot identify a server, or this hub is mixed with others."""
    if not values:
        return None
    if len(set(values)) > MAX_RESOURCES:
        raise invalid_target(f"resource names more than {MAX_RESOURCES} servers.")
    named = tuple(dict.fromkeys(map(_checked, values)))
    hub = canonical(base_url)
    others = tuple(uri for uri in named if uri != hub)
    if others and len(others) < len(named):
        raise invalid_target("A token is for this hub or for other servers, not for both. Request one for each.")
    return others


def _checked(uri: str) -> str:
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
    return canonical(uri)


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


def with_registration(uri: str, registration: str) -> str:
    """The name of a registered server in codes, tokens and consents."""
    return f"{uri}{_ID_MARK}{registration}"


def uri_of(name: str) -> str:
    return name.partition(_ID_MARK)[0]


def registration_of(name: str) -> str:
    """The id of the registration; empty for a server that was not registered."""
    return name.partition(_ID_MARK)[2]


def narrowed(authorized: str, requested: RequestedResources) -> str | None:
    """The servers to issue a token for; None if the request names a server that was not authorized (section 2.2)."""
    if requested is None:
        return authorized
    named = {canonical(uri_of(name)): name for name in authorized.split()}
    within = set(requested) <= named.keys() if requested else not authorized
    return " ".join(named[uri] for uri in requested) if within else None


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
