"""Runs an ASGI app on granian or uvicorn, on a socket that is already listening, until the stop event is set.
`on_stop` is then called before requests in flight are awaited, to end those that would not end by themselves.

The supervisor passes its socket to every web process: a port conflict is detected once, and connections in the accept
queue survive the death of a worker.
"""

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable, Iterator
from typing import Any

from hubgate.server.http.asgi import ASGIApp

log = logging.getLogger("hubgate.worker")

OnReady = Callable[[], None]
OnStop = Callable[[], None]

HEADER_SECONDS = 10
MAX_CONNECTIONS = 10_000
BACKLOG = 2048
GRACE_SECONDS = 7
# Answers of receivers behind tunnels are at most 64 KiB. granian has no such option: it buffers up to 64 MiB of a
# message in fragments (docs/operating.md).
MAX_MESSAGE_BYTES = 128 * 1024


async def serve_with_granian(
    app: ASGIApp, listener: socket.socket, stop: asyncio.Event, on_ready: OnReady, on_stop: OnStop
) -> None:
    from granian.constants import HTTPModes, Interfaces
    from granian.http import HTTP1Settings
    from granian.net import SocketHolder
    from granian.server.embed import Server

    class SharedSocketServer(Server):  # type: ignore[misc]
        # The documented constructor accepts only an address. This method sets the inherited socket in the attribute
        # that granian's own parent process sets. A start-up test detects a granian version that changed this.
        def _init_shared_socket(self) -> None:
            self._ssp = None
            # granian closes the descriptor. A second close of the same number could close another thread's file.
            self._shd = SocketHolder(listener.detach(), False, BACKLOG)

        async def _serve_loop(self, *arguments: Any) -> None:
            on_ready()
            await super()._serve_loop(*arguments)

    logging.getLogger("_granian").setLevel(logging.ERROR)
    server = SharedSocketServer(
        app,
        interface=Interfaces.ASGINL,
        http=HTTPModes.http1,
        websockets=True,
        backlog=BACKLOG,
        backpressure=MAX_CONNECTIONS,
        http1_settings=HTTP1Settings(header_read_timeout=HEADER_SECONDS * 1000, max_buffer_size=64 * 1024),
        log_enabled=False,
    )
    serving = asyncio.create_task(server.serve())
    await _wait_for_either(serving, stop)
    on_stop()
    server.stop()
    await _finish(serving)


async def serve_with_uvicorn(
    app: ASGIApp, listener: socket.socket, stop: asyncio.Event, on_ready: OnReady, on_stop: OnStop
) -> None:
    import uvicorn

    class ServerWithoutSignals(uvicorn.Server):
        # The worker handles signals: uvicorn would end the process before its resources are closed.
        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            on_ready()

    config = uvicorn.Config(
        app,
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        # `trusted_proxies` decides which forwarding headers to trust; uvicorn would trust every local peer.
        proxy_headers=False,
        h11_max_incomplete_event_size=64 * 1024,
        backlog=BACKLOG,
        ws="websockets-sansio",
        ws_max_size=MAX_MESSAGE_BYTES,
        ws_per_message_deflate=False,
    )
    logging.getLogger("uvicorn.error").addFilter(_is_not_about_refusals)
    server = ServerWithoutSignals(config)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    await _wait_for_either(serving, stop)
    on_stop()
    server.should_exit = True
    await _finish(serving)


SERVERS = {"granian": serve_with_granian, "uvicorn": serve_with_uvicorn}


def _is_not_about_refusals(record: logging.LogRecord) -> bool:
    """uvicorn logs an error for each WebSocket that the hub refuses."""
    return record.msg != "ASGI callable returned without completing handshake."


async def _wait_for_either(serving: "asyncio.Task[Any]", stop: asyncio.Event) -> None:
    waiting = asyncio.create_task(stop.wait())
    await asyncio.wait([serving, waiting], return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()


async def _finish(serving: "asyncio.Task[Any]") -> None:
    """Wait for requests in flight, and cut off those that do not end within the grace period."""
    ended, _ = await asyncio.wait([serving], timeout=GRACE_SECONDS)
    if not ended:
        log.warning("requests that did not end within %d s of the stop are cut off", GRACE_SECONDS)
        for name in ("asyncio", "uvicorn.error"):
            logging.getLogger(name).addFilter(_is_not_about_cancellation)
        serving.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await serving


def _is_not_about_cancellation(record: logging.LogRecord) -> bool:
    """granian sets the result of a future that was cancelled; uvicorn logs an error for each cancelled request."""
    error = record.exc_info[1] if record.exc_info else None
    return not isinstance(error, asyncio.CancelledError | asyncio.InvalidStateError)
