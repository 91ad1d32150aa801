"""The way out: resolve once, check every address, dial exactly that one, keep the name, end in time."""

import asyncio
import re
import ssl
from collections.abc import Mapping, Sequence

from hubgate.server.egress.addresses import Address, Network
from hubgate.server.egress.exchange import Answer
from hubgate.server.egress.pool import Pool
from hubgate.server.egress.resolve import Checked, NotReached, Resolve, SystemResolver
from hubgate.server.egress.target import Target, parse_target

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
    ) -> None:
        """`resolve` and `tls` are the network's far end, which tests replace."""
        self._system = SystemResolver() if resolve is None else None
        self._checked = Checked(resolve or self._system or SystemResolver(), allowed, own)
        self._pool = Pool(proxy, tls)

    async def get(self, url: str, headers: Mapping[str, str], *, seconds: float, cap: int) -> Answer:
        target = parse_target(url)
        return await self._within(seconds, target, _request("GET", target, headers, b""), cap)

    async def post(self, url: str, headers: Mapping[str, str], body: bytes, *, seconds: float, cap: int) -> Answer:
        target = parse_target(url)
        return await self._within(seconds, target, _request("POST", target, headers, body), cap)

    def close(self) -> None:
        self._pool.close()
        if self._system is not None:
            self._system.close()

    async def _within(self, seconds: float, target: Target, request: bytes, cap: int) -> Answer:
        """One deadline over all phases: slow names, connections, headers and bodies share it (W19, W20, W25)."""
        try:
            async with asyncio.timeout(seconds):
                return await self._send(target, request, cap)
        except TimeoutError:
            raise NotReached(f"no complete answer within {seconds:.0f} s") from None

    async def _send(self, target: Target, request: bytes, cap: int) -> Answer:
        addresses = await self._checked.addresses(target)
        held = self._pool.take(target, addresses)
        if held is not None:
            key, connection = held
            try:
                answer = await connection.exchange(request, cap)
            except NotReached:
                # Kept alive by us, closed by the other side meanwhile: it has not seen this request.
                if connection.has_begun_answering:
                    raise
            else:
                self._pool.give_back(key, connection)
                return answer
        return await self._send_afresh(target, addresses, request, cap)

    async def _send_afresh(self, target: Target, addresses: Sequence[Address], request: bytes, cap: int) -> Answer:
        key, connection = await self._pool.dial(target, addresses)
        try:
            answer = await connection.exchange(request, cap)
        except BaseException:
            connection.close()
            raise
        self._pool.give_back(key, connection)
        return answer


def _request(method: str, target: Target, headers: Mapping[str, str], body: bytes) -> bytes:
    lines = [f"{method} {target.request} HTTP/1.1", f"Host: {target.host_header}"]
    for name, value in headers.items():
        if not _HEADER_NAME.match(name) or not _HEADER_VALUE.match(value):
            # A line break would start a header, or a request, of the author's own (attack W15).
            raise ValueError(f"{name} cannot be sent as a header")
        lines.append(f"{name}: {value}")
    # Nothing compressed is asked for and nothing is ever inflated (attack W22).
    lines.append("Accept-Encoding: identity")
    if method == "POST":
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body
