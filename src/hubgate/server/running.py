"""From settings to a running hub, in this order: folder, schema, first key, socket, children."""

import asyncio
import contextlib
import os
import socket
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace

from hubgate.server import metrics
from hubgate.server.app import Hub, open_hub
from hubgate.server.errors import StartupError
from hubgate.server.settings import Settings
from hubgate.server.storage import datadir
from hubgate.server.storage.upgrade import SchemaState, ensure_for_serving, schema_state
from hubgate.server.worker import supervise


def serve(settings: Settings, announce: Callable[[Settings], None], web_module: str = supervise.WEB) -> None:
    """Until a signal. `web_module` is how the test build runs the same server with routes of its own."""
    with supervise.bind(settings.host, settings.port) as listener:
        _serve_on(listener, with_actual_port(settings, listener.getsockname()[1]), announce, web_module)


def _serve_on(
    listener: socket.socket, settings: Settings, announce: Callable[[Settings], None], web_module: str
) -> None:
    with prepared(settings), _figures(settings) as environment:
        supervisor = supervise.Supervisor(settings, listener, web_module, environment)
        supervisor.start()
        announce(settings)
        supervisor.watch()


@contextlib.contextmanager
def prepared(settings: Settings) -> Iterator[None]:
    """The data folder held and the database ready for serving."""
    datadir.make_ready(settings.data_dir)
    with datadir.in_use(settings.data_dir):
        asyncio.run(_prepare(settings))
        yield


@contextlib.asynccontextmanager
async def opened_for_operator(settings: Settings) -> AsyncIterator[Hub]:
    """For commands that work on the database, beside a running server or without one."""
    datadir.make_ready(settings.data_dir)
    hub = await open_hub(settings)
    try:
        if await schema_state(hub.db) is not SchemaState.CURRENT:
            raise StartupError("The database does not have this version's schema. Run: hubgate migrate")
        yield hub
    finally:
        await hub.close()


async def _prepare(settings: Settings) -> None:
    hub = await open_hub(settings)
    try:
        await ensure_for_serving(hub.db, settings.database_url)
        await hub.keys.ensure_first()
    finally:
        await hub.close()


def with_actual_port(settings: Settings, port: int) -> Settings:
    """Port 0 asks the system for a free one; the public address follows unless it was given."""
    if settings.port == port:
        return settings
    base_url = settings.raw["base_url"] or f"http://127.0.0.1:{port}"
    raw = {**settings.raw, "port": str(port), "base_url": base_url}
    return replace(settings, port=port, base_url=base_url, raw=raw)


@contextlib.contextmanager
def _figures(settings: Settings) -> Iterator[dict[str, str]]:
    """The children's environment; with metrics on, a folder for their figures and a listener that adds them up."""
    environment = dict(os.environ)
    if not settings.metrics_listen:
        yield environment
        return
    with tempfile.TemporaryDirectory(prefix="hubgate-metrics-") as folder, contextlib.ExitStack() as stack:
        os.environ[metrics.FOLDER_VARIABLE] = environment[metrics.FOLDER_VARIABLE] = folder
        if settings.metrics_listen != f"{settings.host}:{settings.port}":
            stack.callback(metrics.listen(settings.metrics_listen).shutdown)
        yield environment
