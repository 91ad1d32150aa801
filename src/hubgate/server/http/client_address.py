"""The client's IP address, also behind trusted proxies. Nothing else is read from forwarding headers."""

import ipaddress
from collections.abc import Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

from hubgate.server.http.asgi import Scope

Address = IPv4Address | IPv6Address
Networks = Sequence[IPv4Network | IPv6Network]

UNKNOWN = "unknown"


def client_address(scope: Scope, trusted: Networks) -> str:
    """The peer's address; behind trusted proxies, the last address in X-Forwarded-For that is not a trusted proxy.

    The header is read from the right: entries further left are under the client's control.
    """
    client = scope.get("client")
    if not trusted:
        return _canonical(client[0]) if client else UNKNOWN
    peer = _parsed(client[0]) if client else None
    if peer is None:
        return UNKNOWN
    if not _within(peer, trusted):
        return str(peer)
    for hop in reversed(_forwarded(scope)):
        address = _parsed(hop) or _parsed(_without_port(hop))
        if address is None:
            break
        peer = address
        if not _within(peer, trusted):
            break
    return str(peer)


def _forwarded(scope: Scope) -> list[str]:
    values = [value.decode("latin-1") for name, value in scope["headers"] if name == b"x-forwarded-for"]
    return [hop.strip() for hop in ",".join(values).split(",")] if values else []


def _without_port(hop: str) -> str:
    """A hop without its port: some proxies write `203.0.113.9:51234` or `[2001:db8::1]:443`."""
    host, _, port = hop.rpartition(":")
    return host.strip("[]") if port.isdigit() else hop.strip("[]")


@lru_cache(maxsize=4096)
def _parsed(text: str) -> Address | None:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


@lru_cache(maxsize=4096)
def _canonical(text: str) -> str:
    address = _parsed(text)
    return UNKNOWN if address is None else str(address)


def _within(address: Address, networks: Networks) -> bool:
    return any(address in network for network in networks if network.version == address.version)
