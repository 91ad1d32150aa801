"""From a name to one address that was checked, in bounded time."""

import asyncio
import contextlib
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from hubgate.server.egress.addresses import Address, Network, is_allowed
from hubgate.server.egress.target import Target

Resolve = Callable[[str], Awaitable[Sequence[Address]]]

RESOLVE_SECONDS = 3.0
# A look-up that hangs holds its thread until the system gives up; this many may hang before others have to wait.
THREADS = 64


class NotReached(Exception):
    """No answer from the address: blocked, refused, unknown and timed out look alike outside (attack W18).

    `cause` is for the operator's log.
    """

    def __init__(self, cause: str) -> None:
        super().__init__("No answer from the address.")
        self.cause = cause


class SystemResolver:
    """The system's resolver, in threads of its own, asked once for callers that want the same name at once."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, "resolve")
        self._asked: dict[str, asyncio.Future[Sequence[Address]]] = {}

    async def __call__(self, host: str) -> Sequence[Address]:
        asked = self._asked.get(host)
        if asked is None:
            loop = asyncio.get_running_loop()
            asked = self._asked[host] = loop.run_in_executor(self._threads, _look_up, host)
            asked.add_done_callback(lambda _: self._asked.pop(host, None))
        # One caller's deadline must not cancel the look-up of the others.
        return await asyncio.shield(asked)

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
    # The hub's own listener and public address: a delivery to ourselves would be a loop (attack W27).
    own: frozenset[tuple[str, int]] = field(default_factory=frozenset)

    async def addresses(self, target: Target) -> Sequence[Address]:
        if (target.host, target.port) in self.own:
            raise NotReached("it is the hub itself")
        addresses = [target.literal] if target.literal else await self._resolved(target.host)
        for address in addresses:
            if not is_allowed(address, self.allowed) or (str(address), target.port) in self.own:
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
