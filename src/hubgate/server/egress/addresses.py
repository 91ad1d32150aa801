"""Which IP addresses the hub may connect to. `ipaddress.is_global` would allow several that are blocked here."""

import ipaddress
from collections.abc import Iterable, Sequence
from functools import lru_cache

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def _networks(text: str) -> tuple[Network, ...]:
    return tuple(ipaddress.ip_network(word) for word in text.split())


# Metadata services, which hand out a machine's credentials. The operator cannot allow them.
_METADATA = _networks(
    """
    169.254.169.254/32 169.254.170.2/32 169.254.170.23/32 168.63.129.16/32 100.100.100.200/32
    fd00:ec2::254/128 fd00:ec2::23/128 fd20:ce::254/128
    """
)

# Networks that the operator may allow, for development or for receivers in a private network.
_PRIVATE = _networks(
    """
    10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.168.0.0/16 198.18.0.0/15
    ::1/128 fc00::/7 fe80::/10 fec0::/10
    """
)

# Addresses that never belong to a remote host: this host, documentation, relays, multicast, reserved.
_RESERVED = _networks(
    """
    0.0.0.0/8 192.0.0.0/24 192.0.2.0/24 192.88.99.0/24 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4
    ::/128 64:ff9b:1::/48 100::/64 2001::/23 2001:db8::/32 3fff::/20 5f00::/16 ff00::/8
    """
)

_NAT64 = _networks("64:ff9b::/96")
# IPv4-translated (RFC 2765), as stateless translators write it.
_TRANSLATED = _networks("::ffff:0:0:0/96")
# All public IPv6 addresses assigned so far. Future assignments are blocked until they have been reviewed.
_PUBLIC_V6 = _networks("2000::/3")


def is_allowed(address: Address, allowed: Sequence[Network]) -> bool:
    """Whether the hub may connect to the address. `allowed` are private networks that the operator has allowed."""
    return _is_allowed(address, tuple(allowed))


@lru_cache(maxsize=4096)
def _is_allowed(address: Address, allowed: tuple[Network, ...]) -> bool:
    reached = effective_address(address)
    if reached is None:
        return False
    if _within(reached, _METADATA) or _within(reached, _RESERVED):
        return False
    if _within(reached, _PRIVATE):
        return _within(reached, allowed)
    return reached.version == 4 or _within(reached, _PUBLIC_V6)


def can_be_allowed(address: Address) -> bool:
    """Whether the address is in a private network that the operator could allow."""
    reached = effective_address(address)
    return reached is not None and _within(reached, _PRIVATE) and not _within(reached, _METADATA)


def is_public(address: Address) -> bool:
    """Whether anyone on the Internet can reach the address, so that its responses reveal nothing about this network."""
    return is_allowed(address, ())


def effective_address(address: Address) -> Address | None:
    """The address that packets will reach: translated and tunnelled IPv6 addresses contain an IPv4 address.

    None for an obsolete form that is not routed.
    """
    if isinstance(address, ipaddress.IPv4Address):
        return address
    inner = address.ipv4_mapped or address.sixtofour
    if inner is None and address.teredo is not None:
        inner = address.teredo[1]
    if inner is None and (_within(address, _NAT64) or _within(address, _TRANSLATED)):
        inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    if inner is not None:
        return inner
    # ::a.b.c.d is obsolete; :: and ::1 are checked as they are.
    if int(address) >> 32 == 0 and int(address) > 1:
        return None
    return address


def _within(address: Address, networks: Iterable[Network]) -> bool:
    return any(address.version == network.version and address in network for network in networks)
