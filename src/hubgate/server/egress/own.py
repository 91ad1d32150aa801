"""Which addresses are the hub's own: a request to ourselves would be a loop (attack W27)."""

import contextlib
import ipaddress
import socket
from dataclasses import dataclass, field

from hubgate.server.egress.addresses import Address, embedded_in

_LOCALHOST = ("127.0.0.1", "::1")


@dataclass(frozen=True)
class Own:
    """Names and ports under which the hub is known, and where it listens. A wildcard listens on all of the machine."""

    names: frozenset[tuple[str, int]] = field(default_factory=frozenset)

    def is_named(self, host: str, port: int) -> bool:
        return (host, port) in self.names

    def is_at(self, address: Address, port: int) -> bool:
        """However the address is written: packets to it end here."""
        reached = embedded_in(address)
        if reached is None:
            return False
        for host, own_port in self.names:
            if own_port != port:
                continue
            listens = {ipaddress.ip_address(text) for text in _texts(host)}
            if reached in listens or (any(one.is_unspecified for one in listens) and _is_of_this_machine(reached)):
                return True
        return False


NOBODY = Own()


def _texts(host: str) -> tuple[str, ...]:
    if host == "localhost":
        return _LOCALHOST
    try:
        ipaddress.ip_address(host)
    except ValueError:
        # A name: it is recognised as one, and whatever else leads there is the public way in like anyone's.
        return ()
    return (host,)


def _is_of_this_machine(address: Address) -> bool:
    """The system lets nobody take an address that is another machine's."""
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.bind((str(address), 0))
        return True
    return False
