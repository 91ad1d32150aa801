"""Resolves a name to checked addresses, in bounded time."""

import asyncio
import contextlib
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from msgspec import Struct

from hubgate.server.egress.addresses import Address, Network, is_allowed
from hubgate.server.egress.own_addresses import NO_OWN_ADDRESSES, OwnAddresses
from hubgate.server.egress.target import Target

Resolve = Callable[[str], Awaitable[Sequence[Address]]]

RESOLVE_SECONDS = 3.0
# A hanging look-up occupies its thread until the system gives up. The owner of a slow name server can occupy only some
# of the threads (attack W25): names with the same last two labels (a site) share THREADS_PER_SITE. A site such as co.uk
# has many owners, and the hub has no list of such sites, so names with the same last three labels count as one owner
# and share THREADS_PER_OWNER.
THREADS = 256
THREADS_PER_SITE = 32
THREADS_PER_OWNER = 8


class Unreachable(Exception):
    """The address did not respond. Blocked, refused, unknown and timed out look the same to users (attack W18).

    `cause` is for the operator's log. `is_public` says that anyone could have connected to the address; for any other
    address, not even the duration may be shown.
    """

    def __init__(self, cause: str) -> None:
        super().__init__("No answer from the address.")
        self.cause = cause
        self.is_public = False


class NoFreeSlot(Unreachable):
    """Nothing was sent because too many requests or look-ups for the address are in flight. A retry may succeed."""


class SystemResolver:
    """The system's resolver, in separate threads. Concurrent callers with the same name share a look-up."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, "resolve")
        self._pending: dict[str, asyncio.Future[Sequence[Address]]] = {}

    async def __call__(self, host: str) -> Sequence[Address]:
        pending = self._pending.get(host)
        if pending is None:
            same_site, same_owner = self._count_similar(host, 2), self._count_similar(host, 3)
            if same_owner >= THREADS_PER_OWNER or same_site >= THREADS_PER_SITE or len(self._pending) >= THREADS:
                similar = f"{same_site} of them in the same domain as {host}"
                raise NoFreeSlot(f"too many names are being resolved: {len(self._pending)}, {similar}")
            loop = asyncio.get_running_loop()
            pending = self._pending[host] = loop.run_in_executor(self._threads, _look_up, host)
            pending.add_done_callback(lambda _: self._pending.pop(host, None))
        # A caller's deadline must not cancel the look-up that other callers share.
        return await asyncio.shield(pending)

    def _count_similar(self, host: str, labels: int) -> int:
        """How many of the names being resolved end in the same labels, and so probably share a name server."""
        ending = host.split(".")[-labels:]
        return sum(other.split(".")[-labels:] == ending for other in self._pending)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


def _look_up(host: str) -> Sequence[Address]:
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    # Drop scope ids, and duplicates: an address may be listed for several protocols.
    return list(dict.fromkeys(ipaddress.ip_address(str(entry[4][0]).partition("%")[0]) for entry in found))


class CheckedResolver(Struct, frozen=True):
    """Resolves a target and checks its addresses. If any address is blocked, all are rejected (attack W10)."""

    resolve: Resolve
    allowed: Sequence[Network] = ()
    own: OwnAddresses = NO_OWN_ADDRESSES

    async def addresses(self, target: Target) -> Sequence[Address]:
        if self.own.is_named(target.host, target.port):
            raise Unreachable("it is the hub itself")
        addresses = [target.literal] if target.literal else await self._resolve_in_time(target.host)
        for address in addresses:
            if not is_allowed(address, self.allowed) or self.own.is_at(address, target.port):
                raise Unreachable(f"{address} is blocked")
        return addresses

    async def _resolve_in_time(self, host: str) -> Sequence[Address]:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(RESOLVE_SECONDS):
                try:
                    addresses = await self.resolve(host)
                except (OSError, UnicodeError) as error:
                    raise Unreachable(f"{host} does not resolve: {error}") from error
                if not addresses:
                    raise Unreachable(f"{host} has no address")
                return addresses
        raise Unreachable(f"{host} was not resolved within {RESOLVE_SECONDS:.0f} s")
