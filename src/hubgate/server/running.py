"""From settings to a running hub, in this order: socket, folder, secret, schema, first key, set-up link, children."""

import asyncio
import contextlib
import os
import socket
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace

from hubgate.server import metrics
from hubgate.server.accounts.signup import setup_is_open, setup_path
from hubgate.server.clock import system_clock
from hubgate.server.errors import StartupError
from hubgate.server.hub.git.version import require_git
from hubgate.server.oauth.keys import store as key_store
from hubgate.server.oauth.keys.ring import KeyRing
from hubgate.server.opened import Hub, open_hub
from hubgate.server.secret import ServerSecret, existing_secret, first_secret
from hubgate.server.settings import Settings, default_base_url
from hubgate.server.storage import datadir
from hubgate.server.storage.database import Database
from hubgate.server.storage.engines import create_database, open_database, sqlite_path
from hubgate.server.storage.upgrade import SchemaState, ensure_for_serving, migrate, refusal_of, schema_state
from hubgate.server.worker import supervise

Announce = Callable[[Settings, str | None], None]


def serve(settings: Settings, announce: Announce, modules: supervise.Modules = supervise.MODULES) -> None:
    """Until a signal. `announce` is told the set-up link until there is an operator.

    `modules` is how the test build runs the same server with routes of its own.
    """
    with supervise.bind(settings.host, settings.port) as listener:
        _serve_on(listener, with_actual_port(settings, listener.getsockname()[1]), announce, modules)


def _serve_on(listener: socket.socket, settings: Settings, announce: Announce, modules: supervise.Modules) -> None:
    with _figures(settings) as environment:
        supervisor = supervise.Supervisor(settings, listener, modules, environment)
        # Before anything is prepared: asyncio would answer Ctrl-C by cancelling whatever runs, and may lose it.
        supervisor.catch_signals()
        with prepared(settings):
            # Before the children: once they serve, a database that is away for a moment must not end the hub.
            setup_link = asyncio.run(_setup_link(settings))
            if supervisor.start():
                announce(settings, setup_link)
            supervisor.watch()


@contextlib.contextmanager
def prepared(settings: Settings) -> Iterator[None]:
    """The data folder held and the database ready for serving."""
    require_git()
    datadir.make_ready(settings.data_dir)
    with datadir.in_use(settings.data_dir):
        # The secret first: a start that must be refused changes nothing.
        state = asyncio.run(_look(settings))
    if settings.on_sqlite and state is SchemaState.OLDER:
        bring_forward(settings)
    with datadir.in_use(settings.data_dir):
        asyncio.run(_prepare(settings))
        yield


def bring_forward(settings: Settings) -> bool:
    """What `hubgate migrate` does. True if there was something to do."""
    if not settings.on_sqlite:
        return asyncio.run(_migrate(settings))
    # As with PostgreSQL, no older server may be running while the schema moves.
    datadir.make_ready(settings.data_dir)
    with datadir.alone(settings.data_dir):
        return asyncio.run(_migrate(settings))


@contextlib.asynccontextmanager
async def opened_for_operator(settings: Settings) -> AsyncIterator[Hub]:
    """For commands that work on the database, beside a running server or without one."""
    hub = await open_hub(settings)
    try:
        state = await schema_state(hub.db)
        if state is not SchemaState.CURRENT:
            raise StartupError(refusal_of(state))
        yield hub
    finally:
        await hub.close()


async def _setup_link(settings: Settings) -> str | None:
    async with opened_for_operator(settings) as hub:
        return hub.accounts.link(setup_path(hub.accounts)) if await setup_is_open(hub.accounts) else None


async def _look(settings: Settings) -> SchemaState:
    """The database as it is found; StartupError if our secret is not the one it was sealed with."""
    if settings.on_sqlite and not sqlite_path(settings.database_url).exists():
        return SchemaState.EMPTY
    db = await open_database(settings.database_url)
    try:
        state = await schema_state(db)
        if state in (SchemaState.OLDER, SchemaState.CURRENT):
            keys = await db.read(key_store.every)
            if keys:
                KeyRing(db, _secret_of(settings), system_clock).require_own_secret(keys)
        elif not settings.on_sqlite:
            _secret_of(settings)
        return state
    finally:
        await db.close()


def _secret_of(settings: Settings) -> ServerSecret:
    return existing_secret(settings.secret_key, settings.data_dir, settings.on_sqlite)


async def _migrate(settings: Settings) -> bool:
    db = await create_database(settings.database_url)
    try:
        was_behind = await migrate(db, settings.database_url)
        if settings.on_sqlite and not await db.read(key_store.every):
            # `admin` and `doctor` need a secret, and may come before the first start.
            await _make_keys_ready(db, settings)
        return was_behind
    finally:
        await db.close()


async def _prepare(settings: Settings) -> None:
    db = await create_database(settings.database_url)
    try:
        await ensure_for_serving(db, settings.database_url)
        await _make_keys_ready(db, settings)
    finally:
        await db.close()


async def _make_keys_ready(db: Database, settings: Settings) -> None:
    """A secret is made only for a hub that has sealed nothing: beside sealed data a new one would open none of it."""
    find_secret = existing_secret if await db.read(key_store.every) else first_secret
    secret = find_secret(settings.secret_key, settings.data_dir, settings.on_sqlite)
    await KeyRing(db, secret, system_clock).make_ready()


def with_actual_port(settings: Settings, port: int) -> Settings:
    """Port 0 asks the system for a free one; the public address follows unless it was given."""
    if settings.port == port:
        return settings
    base_url = settings.raw["base_url"] or default_base_url(settings.host, port)
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
