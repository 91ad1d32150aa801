"""A web process: opens the hub's resources, serves requests until it is stopped, and closes the resources."""

import asyncio
import gc
import socket
import sys
from collections.abc import Callable

from hubgate.server import log_formats
from hubgate.server.app import build_app
from hubgate.server.http.asgi import ASGIApp
from hubgate.server.resources import Hub, open_hub
from hubgate.server.worker.child import (
    raise_file_limit,
    report_ready,
    run_and_exit,
    run_with_uvloop,
    settings_from_parent,
    stop_event,
)
from hubgate.server.worker.gauges import set_gauges
from hubgate.server.worker.servers import SERVERS


def main(build: Callable[[Hub], ASGIApp] = build_app) -> None:
    """Run a web process. The test build passes another `build` to add routes; nothing else differs."""
    listen_fd, ready_fd = int(sys.argv[1]), int(sys.argv[2])
    run_and_exit(_serve(listen_fd, ready_fd, build), run_with_uvloop)


async def _serve(listen_fd: int, ready_fd: int, build: Callable[[Hub], ASGIApp]) -> None:
    settings = settings_from_parent()
    log_formats.configure(settings.log)
    raise_file_limit()
    stop = stop_event()
    hub = await open_hub(settings)
    listener = socket.socket(fileno=listen_fd)
    listener.setblocking(False)
    app = build(hub)
    # Otherwise the background process sets these metrics.
    reporting = [asyncio.create_task(set_gauges(hub, stop))] if settings.deliver == "off" else []
    # Modules and routes are permanent: garbage collection need not scan them while requests wait.
    gc.freeze()
    try:
        await SERVERS[settings.server](app, listener, stop, lambda: report_ready(ready_fd), hub.end_streams)
    finally:
        for task in reporting:
            task.cancel()
        await asyncio.gather(*reporting, return_exceptions=True)
        await hub.close()


if __name__ == "__main__":
    main()
