"""Resource indicators (RFC 8707): the servers a token is requested for. Pure.

A token is for this hub unless its request names other servers. They are stored as `resource_names` says.
"""

from collections.abc import Sequence

from hubgate.server.oauth.errors import invalid_target
from hubgate.server.oauth.redirects import host_of, lacks_scheme, split_address
from hubgate.server.oauth.resource_names import canonical, has_invalid_escape, uri_of

PARAMETER = "resource"
LONGEST_RESOURCE = 2000
MAX_RESOURCES = 10
NOT_AUTHORIZED = "resource names a server that was not authorized. Name only authorized servers, or leave out resource."
NAME_ONE = "These servers get a token each. Name one of them in resource."

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
    if parts is None or not parts.scheme or lacks_scheme(uri) or has_invalid_escape(uri):
        raise invalid_target("resource must be an absolute URI such as https://mcp.example/mcp.")
    if "#" in uri:
        raise invalid_target("resource has a fragment. Leave out the fragment.")
    if parts.scheme in ("http", "https") and host_of(parts) is None:
        raise invalid_target("resource has no valid host.")
    if not parts.netloc and not parts.path:
        raise invalid_target("resource has only a scheme.")
    return canonical(uri)


def narrowed(authorized: str, requested: RequestedResources) -> str | None:
    """The servers to issue a token for; None if the request names a server that was not authorized (section 2.2)."""
    if requested is None:
        return authorized
    named = {canonical(uri_of(name)): name for name in authorized.split()}
    within = set(requested) <= named.keys() if requested else not authorized
    return " ".join(named[uri] for uri in requested) if within else None
