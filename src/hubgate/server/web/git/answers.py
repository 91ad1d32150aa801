"""Answers to fetches and pushes, sent while they are made."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager

from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive, Scope, Send

from hubgate.server.errors import HubError, RequestTimeout
from hubgate.server.hub.git import receiving
from hubgate.server.hub.git.receiving import Asked, Outcome

log = logging.getLogger("hubgate.git")

Slot = AbstractAsyncContextManager[None]


def begun(content_type: str) -> Message:
    headers = [(b"content-type", content_type.encode()), (b"cache-control", b"no-cache, max-age=0, must-revalidate")]
    return {"type": "http.response.start", "status": 200, "headers": headers}


def part(content: bytes) -> Message:
    return {"type": "http.response.body", "body": content, "more_body": True}


END: Message = {"type": "http.response.body", "body": b"", "more_body": False}


class Fetched:
    """Streams `parts`; a client that leaves ends the program behind them at once, even while it is silent."""

    def __init__(
        self, slot: Slot, parts: Callable[[], AsyncGenerator[bytes, None]], content_type: str, longest_stall: float
    ) -> None:
        self._slot, self._parts, self._type, self._longest_stall = slot, parts, content_type, longest_stall

    async def __call__(self, _: Scope, receive: Receive, send: Send) -> None:
        gone = asyncio.ensure_future(receive())
        sending = asyncio.create_task(self._in_turn(send))
        try:
            await asyncio.wait({gone, sending}, return_when=asyncio.FIRST_COMPLETED)
            if not sending.done():
                raise ClientDisconnect
            await sending
        finally:
            gone.cancel()
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)

    async def _in_turn(self, send: Send) -> None:
        """A client that leaves while it waits for its slot does not get one."""
        async with self._slot:
            await self._send(send)

    async def _send(self, send: Send) -> None:
        parts = self._parts()
        try:
            # What fails before the first part can still be answered with an error.
            content = await anext(parts, None)
            await self._in_time(send, begun(self._type))
            while content is not None:
                await self._in_time(send, part(content))
                content = await anext(parts, None)
            await self._in_time(send, END)
        finally:
            await parts.aclose()

    async def _in_time(self, send: Send, message: Message) -> None:
        try:
            async with asyncio.timeout(self._longest_stall):
                await send(message)
        except TimeoutError:
            raise RequestTimeout("The client stopped reading.") from None


class Pushed:
    """Reports `work`, which reads the body. Once that is here nothing is torn any more: what happens then is reported
    in git's own way, also if it goes wrong, and a client that left changes nothing. It is never `silent` seconds long
    without a sign of life.
    """

    def __init__(
        self, asked: Asked, work: Callable[[], Awaitable[Outcome]], has_come: Callable[[], bool], silent: float
    ) -> None:
        self._asked, self._work, self._has_come, self._silent = asked, work, has_come, silent

    async def __call__(self, _: Scope, __: Receive, send: Send) -> None:
        working = asyncio.ensure_future(self._reported())
        answering = False
        try:
            while not (await asyncio.wait({working}, timeout=self._silent))[0]:
                if self._asked.banded and self._has_come():
                    if not answering:
                        await send(begun(_RESULT))
                        answering = True
                    await send(part(receiving.STILL_HERE))
            report = await working
        finally:
            if not working.done():
                await self._settled(working)
        if not answering:
            await send(begun(_RESULT))
        await send(part(report))
        await send(END)

    async def _reported(self) -> bytes:
        try:
            return receiving.report(self._asked, await self._work())
        except HubError as error:
            if not self._has_come():
                raise
            if error.status >= 500:
                log.warning("a push failed", exc_info=error)
            return receiving.failure(self._asked, error.message)

    async def _settled(self, working: "asyncio.Future[bytes]") -> None:
        """The client is gone, or the hub stops: before the body is here there is nothing to finish."""
        if not self._has_come():
            working.cancel()
        await asyncio.wait({working})


_RESULT = "application/x-git-receive-pack-result"
