"""A web process: opens the hub's resources, serves until told to stop, closes them."""

import asyncio
import logging
import os
import resource
import socket
import sys
from collections.abc import Callable

from starlette.types import ASGIApp

from hubgate.server import logs
from hubgate.server.app import Hub, build_app, open_hub
from hubgate.server.worker.child import report_ready, settings_from_parent, stop_event
from hubgate.server.worker.servers import SERVERS

log = logging.getLogger("hubgate.worker")


def main(build: Callable[[Hub], ASGIApp] = build_app) -> None:
    """`build` is how the test build adds its own routes; nothing else differs."""
    listen_fd, ready_fd = int(sys.argv[1]), int(sys.argv[2])
    asyncio.run(_serve(listen_fd, ready_fd, build))
    # Everything is closed. granian's threads must not meet a finalizing interpreter: one of them would abort it.
    logging.shutdown()
    os._exit(0)


async def _serve(listen_fd: int, ready_fd: int, build: Callable[[Hub], ASGIApp]) -> None:
    settings = settings_from_parent()
    logs.configure()
    _raise_file_limit()
    stop = stop_event()
    hub = await open_hub(settings)
    listener = socket.socket(fileno=listen_fd)
    listener.setblocking(False)
    try:
        serving = asyncio.create_task(SERVERS[settings.server](build(hub), listener, stop))
        report_ready(ready_fd)
        await serving
    finally:
        await hub.close()


def _raise_file_limit() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = hard if hard != resource.RLIM_INFINITY else 65536
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


if __name__ == "__main__":
    main()
