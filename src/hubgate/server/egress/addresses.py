"""Which IP addresses the hub connects to. A table of our own: `ipaddress.is_global` calls several of these global."""

import ipaddress
from collections.abc import Iterable, Sequence
from functools import lru_cache

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def _networks(text: str) -> tuple[Network, ...]:
    return tuple(ipaddress.ip_network(word) for word in text.split())


# Services that hand out a machine's credentials. No allow-list opens them.
_METADATA = _networks(
    """
    169.254.169.254/32 169.254.170.2/32 169.254.170.23/32 168.63.129.16/32 100.100.100.200/32
    fd00:ec2::254/128 fd00:ec2::23/128 fd20:ce::254/128
    """
)

# What an operator may open for development or for receivers at home.
_PRIVATE = _networks(
    """
    10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.168.0.0/16 198.18.0.0/15
    ::1/128 fc00::/7 fe80::/10 fec0::/10
    """
)

# Nobody's address: this host, documentation, relays, multicast, reserved.
_NOWHERE = _networks(
    """
    0.0.0.0/8 192.0.0.0/24 192.0.2.0/24 192.88.99.0/24 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4
    ::/128 64:ff9b:1::/48 100::/64 2001::/23 2001:db8::/32 3fff::/20 5f00::/16 ff00::/8
    """
)

_NAT64 = _networks("64:ff9b::/96")
# IPv4-translated (RFC 2765), as stateless translators write it.
_TRANSLATED = _networks("::ffff:0:0:0/96")
# All that IPv6 gives to the public so far: whatever else comes is closed until somebody has looked at it.
_PUBLIC_V6 = _networks("2000::/3")


def is_allowed(address: Address, allowed: Sequence[Network]) -> bool:
    """Whether to connect. `allowed` are private networks the operator opened."""
    return _is_allowed(address, tuple(allowed))


@lru_cache(maxsize=4096)
def _is_allowed(address: Address, allowed: tuple[Network, ...]) -> bool:
    judged = embedded_in(address)
    if judged is None:
        return False
    if _within(judged, _METADATA) or _within(judged, _NOWHERE):
        return False
    if _within(judged, _PRIVATE):
        return _within(judged, allowed)
    return judged.version == 4 or _within(judged, _PUBLIC_V6)


def may_be_opened(address: Address) -> bool:
    """Whether an operator could allow it."""
    judged = embedded_in(address)
    return judged is not None and _within(judged, _PRIVATE) and not _within(judged, _METADATA)


def is_public(address: Address) -> bool:
    """Whether anyone on the Internet could dial it too, so that how it answers is no secret of this network."""
    return is_allowed(address, ())


def embedded_in(address: Address) -> Address | None:
    """The address that packets will reach: translations and tunnels carry an IPv4 address inside an IPv6 one.

    None for an old form that no network routes.
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
    # ::a.b.c.d, long out of use; :: and ::1 are judged as they are.
    if int(address) >> 32 == 0 and int(address) > 1:
        return None
    return address


def _within(address: Address, networks: Iterable[Network]) -> bool:
    return any(address.version == network.version and address in network for network in networks)
