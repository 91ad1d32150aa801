"""The client for outgoing requests: resolves once, checks every address, dials a checked one, enforces a deadline."""

import asyncio
import re
import ssl
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

from msgspec import Struct

from hubgate.server.egress.addresses import Address, Network, can_be_allowed, effective_address, is_allowed, is_public
from hubgate.server.egress.connection import Connection, HttpResponse, OnEnd
from hubgate.server.egress.own_addresses import OwnAddresses, is_local
from hubgate.server.egress.pool import Key, Pool
from hubgate.server.egress.resolve import CheckedResolver, NoFreeSlot, Resolve, SystemResolver, Unreachable
from hubgate.server.egress.target import AddressNotAllowed, Target, parse_target
from hubgate.server.egress.tunnel_links import NO_LINKS, TunnelLinks

MAX_PER_ADDRESS = 64
# A receiver that responds frees a slot within this time. If all requests hang, waiting longer is useless.
WAIT_SECONDS = 0.5

# How long the checked addresses of a name are used for requests on idle connections, without resolving it again.
REUSE_SECONDS = 10.0
MAX_RECENT = 4096

_HEADER_NAME = re.compile(r"[A-Za-z0-9-]+\Z")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e]*\Z")


class Egress:
    def __init__(
        self,
        allowed: Sequence[Network] = (),
        proxy: str = "",
        own: frozenset[tuple[str, int]] = frozenset(),
        resolve: Resolve | None = None,
        tls: ssl.SSLContext | None = None,
        reuse_seconds: float = REUSE_SECONDS,
        links: TunnelLinks = NO_LINKS,
    ) -> None:
        """`own`: the hub's own names and ports. Tests pass `resolve` and `tls` to replace DNS and certificates."""
        self.links = links
        self._reuse_seconds = reuse_seconds
        self._system = SystemResolver() if resolve is None else None
        self._allowed = allowed
        self._checked = CheckedResolver(resolve or self._system or SystemResolver(), allowed, OwnAddresses(own))
        self._pool = Pool(proxy, tls)
        self._slots = AddressSlots()
        self._recent: dict[tuple[str, int], _Route] = {}

    def check(self, url: str) -> None:
        """Reject a URL that can never be used. Names are not resolved, because their addresses may change."""
        target = parse_target(url)
        if self.links.find(target) is not None:
            # Not dialled: the hub itself forwards the request.
            return
        if target.literal is not None and not is_allowed(target.literal, self._allowed):
            raise AddressNotAllowed(_private(target.literal) if can_be_allowed(target.literal) else "it is reserved")

    async def get(self, url: str, headers: Mapping[str, str], *, seconds: float, cap: int) -> HttpResponse:
        target = parse_target(url)
        return await self.send(target, request_head("GET", target, headers) + b"\r\n", seconds=seconds, cap=cap)

    def start(self, target: Target, request: bytes, cap: int, on_end: OnEnd) -> Connection | None:
        """Send a request on an idle connection, without waiting. None if that is not possible now: use `send`.

        The caller enforces the deadline, with `Connection.fail`.
        """
        route = self._recent.get((target.host, target.port))
        if route is None or (target.literal is None and time.monotonic() > route.at + self._reuse_seconds):
            return None
        if not self._slots.try_acquire(route.reached):
            return None
        connection = self._pool.take(route.key)
        if connection is None:
            self._slots.release(route.reached)
            return None

        def ended(outcome: HttpResponse | Unreachable) -> None:
            self._slots.release(route.reached)
            if isinstance(outcome, Unreachable):
                outcome.is_public = all(map(is_public, route.addresses))
            else:
                self._pool.put_back(route.key, connection)
            on_end(outcome)

        connection.start(request, cap, ended)
        return connection

    def limit_per_address(self, limit: int) -> None:
        """Limit the requests of this process to one IP address."""
        self._slots.limit = limit

    def close(self) -> None:
        self._pool.close()
        if self._system is not None:
            self._system.close()

    async def send(self, target: Target, request: bytes, *, seconds: float, cap: int) -> HttpResponse:
        """Send with one deadline for resolution, connection, headers and body (attacks W19, W20, W25)."""
        addresses: Sequence[Address] = ()
        try:
            async with asyncio.timeout(seconds):
                addresses = await self._checked.addresses(target)
                self._remember(target, addresses)
                return await self._send(target, addresses, request, cap)
        except (TimeoutError, Unreachable) as error:
            late = f"no complete answer within {seconds:.0f} s"
            failure = error if isinstance(error, Unreachable) else Unreachable(late)
            failure.is_public = bool(addresses) and all(map(is_public, addresses))
            raise failure from None

    @asynccontextmanager
    async def connect(
        self, target: Target, share: "AddressSlots"
    ) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        """A connection to a checked address, without TLS, for a caller that speaks for itself (`spaces/proxy.py`). It
        takes a slot of the address until the end of the block, and one of the caller's share of these slots.
        """
        failure: Unreachable = NoFreeSlot("too many connections to this address are open")
        addresses = await self._checked.addresses(target)
        if any(is_public(address) and is_local(address) for address in addresses):
            # What listens there may be meant for this machine only: a firewall does not see such a connection.
            raise Unreachable(f"{target.host} is this machine")
        for address in addresses:
            reached = _reached(address)
            async with share.acquire(reached) as may_try, self._slots.acquire(reached) as has_slot:
                if not (may_try and has_slot):
                    continue
                try:
                    reader, writer = await self._pool.open_stream(target, address)
                except Unreachable as error:
                    failure = error
                    continue
                try:
                    yield reader, writer
                finally:
                    writer.transport.abort()
                return
        raise failure

    def _remember(self, target: Target, addresses: Sequence[Address]) -> None:
        self._recent.pop((target.host, target.port), None)
        if len(self._recent) >= MAX_RECENT:
            del self._recent[next(iter(self._recent))]
        first = addresses[0]
        route = _Route(addresses, time.monotonic(), _reached(first), Key.of(target, first))
        self._recent[(target.host, target.port)] = route

    async def _send(self, target: Target, addresses: Sequence[Address], request: bytes, cap: int) -> HttpResponse:
        """Send to the first address that accepts a connection and has a free slot."""
        failure: Unreachable = NoFreeSlot("too many requests to this address are in flight")
        for address in addresses:
            async with self._slots.acquire(_reached(address)) as has_slot:
                if not has_slot:
                    continue
                key = Key.of(target, address)
                answer = await self._send_on_idle(key, request, cap)
                if answer is not None:
                    return answer
                try:
                    connection = await self._pool.dial(target, address)
                except Unreachable as error:
                    failure = error
                    continue
                return await self._exchange(key, connection, request, cap)
        raise failure

    async def _send_on_idle(self, key: Key, request: bytes, cap: int) -> HttpResponse | None:
        """Send on an idle connection; None if there is none, or if the peer had already closed it."""
        connection = self._pool.take(key)
        if connection is None:
            return None
        try:
            return await self._exchange(key, connection, request, cap)
        except Unreachable:
            if not connection.was_closed_before_use:
                raise
            return None

    async def _exchange(self, key: Key, connection: Connection, request: bytes, cap: int) -> HttpResponse:
        try:
            answer = await connection.exchange(request, cap)
        except BaseException:
            connection.close()
            raise
        self._pool.put_back(key, connection)
        return answer


class _Route(Struct, frozen=True):
    """The addresses of a host that were checked last, and when; where the first one leads; its idle connections."""

    addresses: Sequence[Address]
    at: float
    reached: str
    key: Key


def _reached(address: Address) -> str:
    """All IPv6 forms of an IPv4 address reach the same machine. As text: the hash of an address object is slow."""
    return str(effective_address(address))


class AddressSlots:
    """Limits the requests in flight to one IP address, regardless of name, port and owner, in each process.

    A thousand webhooks of a hundred users that all point at one victim must not flood it (attack W29).
    """

    def __init__(self, limit: int = MAX_PER_ADDRESS) -> None:
        self.limit = limit
        self._taken: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    def try_acquire(self, reached: str) -> bool:
        if self._taken[reached] >= self.limit:
            return False
        self._taken[reached] += 1
        return True

    @asynccontextmanager
    async def acquire(self, reached: str) -> AsyncIterator[bool]:
        """Take a slot for the duration of the block; False if none is free in time."""
        if not self.try_acquire(reached) and not await self._wait_for_slot(reached):
            yield False
            return
        try:
            yield True
        finally:
            self.release(reached)

    async def _wait_for_slot(self, reached: str) -> bool:
        """Wait for a slot that another request releases, in first-come order; False after the timeout."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(reached, deque()).append(turn)
        try:
            await asyncio.wait([turn], timeout=WAIT_SECONDS)
        except asyncio.CancelledError:
            if not turn.cancel():
                self.release(reached)
            raise
        return not turn.cancel()

    def release(self, reached: str) -> None:
        if waiting := self._waiting.get(reached):
            while waiting:
                turn = waiting.popleft()
                if not turn.done():
                    turn.set_result(None)
                    return
            del self._waiting[reached]
        self._taken[reached] -= 1
        if not self._taken[reached]:
            del self._taken[reached]


def _private(address: Address) -> str:
    """The rule that a private address breaks; for a receiver on the hub's own machine, also what to do."""
    rule = "it is private, and HUBGATE_EGRESS_ALLOW does not allow its network"
    reached = effective_address(address)
    if reached is None or not reached.is_loopback:
        return rule
    network = "127.0.0.0/8" if reached.version == 4 else "::1/128"
    return f"{rule}. Start the hub with HUBGATE_EGRESS_ALLOW={network}, or use `hubgate webhooks listen`"


def can_be_sent(name: str, value: str) -> bool:
    return _HEADER_NAME.match(name) is not None and _HEADER_VALUE.match(value) is not None


def request_head(method: str, target: Target, headers: Mapping[str, str]) -> bytes:
    """The request line and headers, without the empty line that ends them."""
    lines = [f"{method} {target.path_and_query} HTTP/1.1", f"Host: {target.host_header}"]
    for name, value in headers.items():
        if not can_be_sent(name, value):
            # A line break would let the author of the value inject a header or a request (attack W15).
            raise ValueError(f"{name} cannot be sent as a header")
        lines.append(f"{name}: {value}")
    # Compressed responses are not requested and never decompressed (attack W22).
    lines.append("Accept-Encoding: identity\r\n")
    return "\r\n".join(lines).encode()
