"""The response to a forwarded request: sends the client's body to the service and the service's answer to the client.

Nothing is buffered beyond a few hundred kilobytes: each side is read only as fast as the other side accepts data.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager

from hubgate.server.errors import BadGateway, Unavailable
from hubgate.server.gateway.connection import RequestHead, StoppedReading, UpstreamConnection
from hubgate.server.gateway.context import Gateway
from hubgate.server.gateway.headers import response_headers
from hubgate.server.gateway.upstream import Upstream
from hubgate.server.http.asgi import Receive, Scope, Send
from hubgate.server.http.streaming import send_in_time
from hubgate.server.jobs.caller import ClientLeft

# On 401 existing clients drop their token, but the service rejected the hub's identity, not the token.
_IDENTITY_REJECTED = (401, 407)


class ForwardedResponse:
    """Forwards one request. When the client disconnects, the connection to the service is closed at once. When the
    service fails before its answer has begun, the client gets an error; after that, the client is cut off.
    """

    def __init__(
        self,
        gateway: Gateway,
        upstream: Upstream,
        slot: AbstractAsyncContextManager[bool],
        signed_head: Callable[[], Awaitable[RequestHead]],
        body: AsyncIterator[bytes],
        check_again: Callable[[], Awaitable[None]],
    ) -> None:
        self._gateway, self._upstream, self._slot = gateway, upstream, slot
        self._signed_head, self._body, self._check_again = signed_head, body, check_again

    async def __call__(self, _: Scope, receive: Receive, send: Send) -> None:
        disconnected = asyncio.ensure_future(receive())
        forwarding = asyncio.create_task(self._forward(send))
        try:
            await asyncio.wait({disconnected, forwarding}, return_when=asyncio.FIRST_COMPLETED)
            if not forwarding.done():
                raise ClientLeft
            await forwarding
        finally:
            await _cancel(forwarding)
            disconnected.cancel()

    async def _forward(self, send: Send) -> None:
        async with self._slot as was_queued:
            if was_queued:
                await self._check_again()
            # Signed only now: the identity is valid for a minute, and waiting for a slot may take half of it.
            head = await self._signed_head()
            streams = await self._upstream.connect()
            connection = UpstreamConnection(self._upstream, head, streams, self._gateway.longest_silence)
            upload = asyncio.create_task(self._upload(connection, head))
            download = asyncio.create_task(self._download(connection, send))
            checks = asyncio.create_task(self._check_regularly())
            try:
                # A service may answer before it has read the body; an upload or a check that fails first ends the
                # request.
                running = {upload, download, checks}
                while download in running:
                    done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                    for task in done:
                        task.result()
            finally:
                # First, because a disconnect may cancel this task while it waits.
                connection.abort()
                await _cancel(upload, download, checks)

    async def _check_regularly(self) -> None:
        """Raise once the caller has lost the permission: an answer may stream for days (attack O44)."""
        while True:
            await asyncio.sleep(self._gateway.permission_interval)
            # A short database outage does not end streams; the permission is checked again after the next interval.
            with contextlib.suppress(Unavailable):
                await self._check_again()

    async def _upload(self, connection: UpstreamConnection, head: RequestHead) -> None:
        """Send the body as it is received. The end is withheld until the permission was checked again: a client that
        delays it must not retain permissions that it has since lost (attack O44).
        """
        if head.length == 0:
            return
        sent, last = 0, b""
        try:
            async for part in self._body:
                sent += len(part)
                if part and sent == head.length:
                    part, last = part[:-1], part[-1:]
                if part:
                    await connection.send(part)
            await self._check_again()
            if last:
                await connection.send(last)
            await connection.finish()
        except StoppedReading:
            return

    async def _download(self, connection: UpstreamConnection, send: Send) -> None:
        await connection.receive_head()
        if connection.status in _IDENTITY_REJECTED:
            raise BadGateway(
                f"The {self._upstream.label} rejected the hub's identity. Notify the operator of this hub."
            )
        headers = response_headers(connection.status, connection.headers, self._upstream, self._gateway.base_url)
        stall = self._gateway.longest_stall
        await send_in_time(
            send, {"type": "http.response.start", "status": connection.status, "headers": headers}, stall
        )
        async for part in connection.parts():
            await send_in_time(send, {"type": "http.response.body", "body": part, "more_body": True}, stall)
        await send_in_time(send, {"type": "http.response.body", "body": b"", "more_body": False}, stall)


async def _cancel(*tasks: "asyncio.Task[None]") -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
