"""Performs effects in an event loop, with httpx; blocking work runs in threads."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from hubgate.client.transport import ResponseReader, open_client, request_arguments, translate_error
from hubgate.client.wire import Flow, Request, Response, Send, Sleep, Upload

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")


class AsyncDriver:
    """Runs flows in one event loop."""

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._clients: dict[str, Any] = {}

    async def run(self, flow: Flow[T]) -> T:
        try:
            effect = next(flow)
            while True:
                try:
                    result = await self._perform(effect)
                except BaseException as error:  # noqa: BLE001, RUF100 (raised in the flow)
                    effect = flow.throw(error)
                else:
                    effect = flow.send(result)
        except StopIteration as end:
            value: T = end.value
            return value
        finally:
            flow.close()

    async def close(self) -> None:
        while self._clients:
            await self._clients.popitem()[1].aclose()

    async def _perform(self, effect: Any) -> object:
        if isinstance(effect, Send):
            return await self._send(effect.request)
        if isinstance(effect, Sleep):
            await asyncio.sleep(effect.seconds)
            return None
        done: object = await asyncio.to_thread(effect.function)
        return done

    async def _send(self, request: Request) -> Response:
        import httpx

        arguments = request_arguments(request, self._timeout)
        if isinstance(request.body, Upload):
            arguments["content"] = _in_threads(request.body.pieces())
        try:
            async with self._client(request.url).stream(**arguments) as raw:
                reader = ResponseReader(request, raw, request.read_timeout or self._timeout)
                sink = request.sink
                if sink is not None and reader.is_success and await asyncio.to_thread(sink.begin, reader.head):
                    async for piece in raw.aiter_raw():
                        await asyncio.to_thread(sink.write, piece)
                else:
                    async for piece in raw.aiter_raw():
                        if not reader.add(piece):
                            break
                return reader.response
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
            raise translate_error(error, request.url) from error

    def _client(self, url: str) -> "httpx.AsyncClient":
        import httpx

        scheme = urlsplit(url).scheme
        if scheme not in self._clients:
            self._clients[scheme] = open_client(httpx.AsyncClient, scheme)
        found: httpx.AsyncClient = self._clients[scheme]
        return found


async def _in_threads(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    while (piece := await asyncio.to_thread(next, pieces, None)) is not None:
        yield piece
