"""From a name to one address that was checked, in bounded time."""

import asyncio
import contextlib
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from hubgate.server.egress.addresses import Address, Network, is_allowed
from hubgate.server.egress.own import NOBODY, Own
from hubgate.server.egress.target import Target

Resolve = Callable[[str], Awaitable[Sequence[Address]]]

RESOLVE_SECONDS = 3.0
# A look-up that hangs holds its thread until the system gives up. Whoever runs a slow name server for names of their
# own has some of the threads at most (attack W25). Two labels are a site. Below some, such as co.uk, everybody may have
# a name, and no list of those is at hand: so names that share three labels get a part of their site's threads, and
# whoever fills it leaves the rest to neighbours.
THREADS = 256
THREADS_PER_SITE = 32
THREADS_PER_OWNER = 8


class NotReached(Exception):
    """No answer from the address: blocked, refused, unknown and timed out look alike outside (attack W18).

    `cause` is for the operator's log. `is_public` says that the address is one anybody could have dialled: of any other
    not even how long it took may be told.
    """

    def __init__(self, cause: str) -> None:
        super().__init__("No answer from the address.")
        self.cause = cause
        self.is_public = False


class NoRoom(NotReached):
    """Nothing was sent: as much as may be is in the air to that address, or waits for its name. Later it may go."""


class SystemResolver:
    """The system's resolver, in threads of its own, asked once for callers that want the same name at once."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, "resolve")
        self._asked: dict[str, asyncio.Future[Sequence[Address]]] = {}

    async def __call__(self, host: str) -> Sequence[Address]:
        asked = self._asked.get(host)
        if asked is None:
            same_site, same_owner = self._like(host, 2), self._like(host, 3)
            if same_owner >= THREADS_PER_OWNER or same_site >= THREADS_PER_SITE or len(self._asked) >= THREADS:
                like = f"{same_site} like {host}, {same_owner} very much so"
                raise NoRoom(f"{len(self._asked)} names are being resolved, {like}")
            loop = asyncio.get_running_loop()
            asked = self._asked[host] = loop.run_in_executor(self._threads, _look_up, host)
            asked.add_done_callback(lambda _: self._asked.pop(host, None))
        # One caller's deadline must not cancel the look-up of the others.
        return await asyncio.shield(asked)

    def _like(self, host: str, labels: int) -> int:
        """How many names are being resolved that end in the same labels: their answers probably come from one name
        server.
        """
        ending = host.split(".")[-labels:]
        return sum(other.split(".")[-labels:] == ending for other in self._asked)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


def _look_up(host: str) -> Sequence[Address]:
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    # A scope id has no business here, and one address may be listed for several protocols.
    return list(dict.fromkeys(ipaddress.ip_address(str(entry[4][0]).partition("%")[0]) for entry in found))


@dataclass(frozen=True)
class Checked:
    """Resolves and judges. A set that mixes good and bad addresses is refused whole (attack W10)."""

    resolve: Resolve
    allowed: Sequence[Network] = ()
    own: Own = NOBODY

    async def addresses(self, target: Target) -> Sequence[Address]:
        if self.own.is_named(target.host, target.port):
            raise NotReached("it is the hub itself")
        addresses = [target.literal] if target.literal else await self._resolved(target.host)
        for address in addresses:
            if not is_allowed(address, self.allowed) or self.own.is_at(address, target.port):
                raise NotReached(f"{address} is blocked")
        return addresses

    async def _resolved(self, host: str) -> Sequence[Address]:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(RESOLVE_SECONDS):
                try:
                    addresses = await self.resolve(host)
                except (OSError, UnicodeError) as error:
                    raise NotReached(f"{host} does not resolve: {error}") from error
                if not addresses:
                    raise NotReached(f"{host} has no address")
                return addresses
        raise NotReached(f"{host} was not resolved within {RESOLVE_SECONDS:.0f} s")
