"""Streams of git's protocol: request bodies, which git clients compress, and responses to fetches and pushes."""

import asyncio
import logging
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager

from hubgate.server.errors import BadRequest, HubError, PayloadTooLarge, RequestTimeout, UnsupportedMedia
from hubgate.server.http.asgi import ClientDisconnect, Message, Receive, Scope, Send
from hubgate.server.http.request import HubRequest
from hubgate.server.hub.git import receive_pack
from hubgate.server.hub.git.receive_pack import PushOutcome, PushRequest

# At most this much decompressed data is in memory at once.
_STEP = 64 * 1024
_GZIP = 16 + zlib.MAX_WBITS


class RequestBody:
    """A request body of at most `limit` bytes after decompression: the route's cap limits only the received size, and a
    few kilobytes of gzip can contain gigabytes.

    `ended` is True once the whole body has been read.
    """

    def __init__(self, request: HubRequest, limit: int) -> None:
        self.ended = False
        match request.headers.get("content-encoding", "identity").strip().lower():
            case "identity":
                self._parts = _parts(request)
            case "gzip" | "x-gzip":
                self._parts = inflate(_parts(request), limit)
            case _:
                raise UnsupportedMedia("Send the body uncompressed or with gzip.")

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._parts:
            yield part
        self.ended = True


async def _parts(request: HubRequest) -> AsyncIterator[bytes]:
    if request.headers.get("content-length", "0") == "0" and "transfer-encoding" not in request.headers:
        # There is no body, and the task that waits for a disconnect has consumed the message that says so.
        return
    async for part in request.stream():
        if part:
            yield part


async def inflate(parts: AsyncIterator[bytes], limit: int) -> AsyncIterator[bytes]:
    """Decompress gzip; raises if the result has more than `limit` bytes."""
    decompressor, count = zlib.decompressobj(_GZIP), 0
    async for part in parts:
        out = b""
        while (part or len(out) == _STEP) and not decompressor.eof:
            out = _decompress(decompressor, part)
            part = decompressor.unconsumed_tail
            count += len(out)
            if count > limit:
                raise PayloadTooLarge(f"The body has more than {limit:,} bytes.")
            if out:
                yield out
    if not decompressor.eof:
        raise BadRequest("The compressed body ended early.")


def _decompress(decompressor: "zlib._Decompress", part: bytes) -> bytes:
    try:
        return decompressor.decompress(part, _STEP)
    except zlib.error:
        raise BadRequest("The body is not gzip.") from None


log = logging.getLogger("hubgate.git")

Slot = AbstractAsyncContextManager[bool]


def start_message(content_type: str) -> Message:
    headers = [(b"content-type", content_type.encode()), (b"cache-control", b"no-cache, max-age=0, must-revalidate")]
    return {"type": "http.response.start", "status": 200, "headers": headers}


def body_message(content: bytes) -> Message:
    return {"type": "http.response.body", "body": content, "more_body": True}


END: Message = {"type": "http.response.body", "body": b"", "more_body": False}


class FetchResponse:
    """Streams `parts`. When the client disconnects, the git program that produces them is stopped at once, even if it
    has not written anything.
    """

    def __init__(
        self, slot: Slot, parts: Callable[[], AsyncGenerator[bytes, None]], content_type: str, longest_stall: float
    ) -> None:
        self._slot, self._parts, self._type, self._longest_stall = slot, parts, content_type, longest_stall

    async def __call__(self, _: Scope, receive: Receive, send: Send) -> None:
        disconnected = asyncio.ensure_future(receive())
        sender = asyncio.create_task(self._send_in_slot(send))
        try:
            await asyncio.wait({disconnected, sender}, return_when=asyncio.FIRST_COMPLETED)
            if not sender.done():
                raise ClientDisconnect
            await sender
        finally:
            disconnected.cancel()
            sender.cancel()
            await asyncio.gather(sender, return_exceptions=True)

    async def _send_in_slot(self, send: Send) -> None:
        """Send once a slot is free. A client that disconnects while waiting gets no slot."""
        async with self._slot:
            await self._send(send)

    async def _send(self, send: Send) -> None:
        parts = self._parts()
        try:
            # A failure before the first part can still be answered with an error.
            content = await anext(parts, None)
            await self._send_in_time(send, start_message(self._type))
            while content is not None:
                await self._send_in_time(send, body_message(content))
                content = await anext(parts, None)
            await self._send_in_time(send, END)
        finally:
            await parts.aclose()

    async def _send_in_time(self, send: Send, message: Message) -> None:
        try:
            async with asyncio.timeout(self._longest_stall):
                await send(message)
        except TimeoutError:
            raise RequestTimeout("The client stopped reading.") from None


class PushResponse:
    """Reports the outcome of `work`, which reads the body. Once the body is complete, the push always finishes,
    even if the client disconnects, and failures are reported in git's protocol. From then on, clients with a side band
    get a keepalive every `keepalive_seconds` seconds.
    """

    def __init__(
        self,
        request: PushRequest,
        work: Callable[[], Awaitable[PushOutcome]],
        body_complete: Callable[[], bool],
        keepalive_seconds: float,
    ) -> None:
        self._request, self._work = request, work
        self._body_complete, self._keepalive_seconds = body_complete, keepalive_seconds

    async def __call__(self, _: Scope, __: Receive, send: Send) -> None:
        working = asyncio.ensure_future(self._report())
        response_started = False
        try:
            while not (await asyncio.wait({working}, timeout=self._keepalive_seconds))[0]:
                if self._request.uses_side_band and self._body_complete():
                    if not response_started:
                        await send(start_message(_RESULT))
                        response_started = True
                    await send(body_message(receive_pack.KEEPALIVE))
            report = await working
        finally:
            if not working.done():
                await self._finish_or_cancel(working)
        if not response_started:
            await send(start_message(_RESULT))
        await send(body_message(report))
        await send(END)

    async def _report(self) -> bytes:
        try:
            return receive_pack.report(self._request, await self._work())
        except HubError as error:
            if not self._body_complete():
                raise
            if error.status >= 500:
                log.warning("a push failed", exc_info=error)
            return receive_pack.failure(self._request, error.message)

    async def _finish_or_cancel(self, working: "asyncio.Future[bytes]") -> None:
        """Wait for the work after a disconnect or at shutdown; cancel it first if the body is incomplete."""
        if not self._body_complete():
            working.cancel()
        await asyncio.wait({working})


_RESULT = "application/x-git-receive-pack-result"
