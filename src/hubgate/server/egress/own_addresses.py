"""The hub's own addresses, which are blocked: a request to itself would be a loop (attack W27)."""

import contextlib
import ipaddress
import socket

from msgspec import Struct, field

from hubgate.server.egress.addresses import Address, effective_address

_LOCALHOST = ("127.0.0.1", "::1")


class OwnAddresses(Struct, frozen=True):
    """The hub's public names, listening addresses and ports. A wildcard covers all addresses of this machine."""

    names: frozenset[tuple[str, int]] = field(default_factory=frozenset)

    def is_named(self, host: str, port: int) -> bool:
        return (host, port) in self.names

    def is_at(self, address: Address, port: int) -> bool:
        """Whether packets to the address reach the hub, however the address is written."""
        reached = effective_address(address)
        if reached is None:
            return False
        for host, own_port in self.names:
            if own_port != port:
                continue
            listening = {ipaddress.ip_address(text) for text in _literal_addresses(host)}
            if reached in listening or (
                any(own_address.is_unspecified for own_address in listening) and is_local(reached)
            ):
                return True
        return False


NO_OWN_ADDRESSES = OwnAddresses()


def _literal_addresses(host: str) -> tuple[str, ...]:
    if host == "localhost":
        return _LOCALHOST
    try:
        ipaddress.ip_address(host)
    except ValueError:
        # `is_named` covers names; the addresses behind a name are public and not blocked.
        return ()
    return (host,)


def is_local(address: Address) -> bool:
    """Whether the address belongs to this machine: binding to another machine's address fails."""
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.bind((str(address), 0))
        return True
    return False
