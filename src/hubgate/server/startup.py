"""Starts the hub in this order: socket, data folder, secret, schema, first key, set-up link, child processes."""

import asyncio
import contextlib
import logging
import os
import socket
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace

from hubgate.server import metrics
from hubgate.server.accounts.signup import setup_is_open, setup_path
from hubgate.server.clock import system_clock
from hubgate.server.errors import StartupError
from hubgate.server.hub.context import Limits
from hubgate.server.hub.git.program import require_git
from hubgate.server.oauth.keys import store as key_store
from hubgate.server.oauth.keys.ring import KeyRing
from hubgate.server.objects.opening import require_variables
from hubgate.server.resources import Hub, open_hub, store_settings
from hubgate.server.secret import ServerSecret, existing_or_new_secret, existing_secret
from hubgate.server.settings import Settings, default_base_url
from hubgate.server.storage import data_folder
from hubgate.server.storage.database import Database
from hubgate.server.storage.engines import create_database, open_database
from hubgate.server.storage.running_address import published
from hubgate.server.storage.upgrade import SchemaState, ensure_current_schema, migrate, schema_error, schema_state
from hubgate.server.worker.space_runner import require_runner
from hubgate.server.worker.supervisor import MODULES, Modules, Supervisor, bind

log = logging.getLogger("hubgate.startup")

Announce = Callable[[Settings, str | None], None]


def serve(settings: Settings, announce: Announce, modules: Modules = MODULES) -> None:
    """Run the hub until a signal stops it. `announce` receives the set-up link as long as no operator exists.

    The test build passes other `modules` to run the same server with additional routes.
    """
    with bind(settings.host, settings.port) as listener:
        _serve_on(listener, with_actual_port(settings, listener.getsockname()[1]), announce, modules)


def _serve_on(listener: socket.socket, settings: Settings, announce: Announce, modules: Modules) -> None:
    with _metrics_environment(settings) as environment:
        supervisor = Supervisor(settings, listener, modules, environment)
        # Before the preparation: asyncio handles Ctrl-C by cancelling the running task, and may lose the signal.
        supervisor.catch_signals()
        require_runner(settings)
        with prepared(settings):
            # Before the children start: once they serve, a short database outage must not stop the hub.
            setup_link = asyncio.run(_setup_link(settings))
            with published(settings.data_dir, settings.base_url):
                if supervisor.start():
                    announce(settings, setup_link)
                supervisor.watch()


@contextlib.contextmanager
def prepared(settings: Settings) -> Iterator[None]:
    """Lock the data folder and prepare the database for serving."""
    require_git()
    require_variables(store_settings(settings, Limits()), os.environ)
    data_folder.prepare(settings.data_dir)
    with data_folder.shared_lock(settings.data_dir):
        # Check the secret first: a start that fails must change nothing.
        state = asyncio.run(_inspect(settings))
    if settings.engine.is_local and state is SchemaState.OLDER:
        migrate_database(settings)
    with data_folder.shared_lock(settings.data_dir):
        asyncio.run(_prepare(settings))
        yield


def migrate_database(settings: Settings) -> bool:
    """Migrate the database, as `hubgate migrate` does. True if the schema was not current."""
    if not settings.engine.is_local:
        return asyncio.run(_migrate(settings))
    # No older server may run during the migration.
    data_folder.prepare(settings.data_dir)
    with data_folder.exclusive_lock(settings.data_dir):
        return asyncio.run(_migrate(settings))


@contextlib.asynccontextmanager
async def opened_for_operator(settings: Settings) -> AsyncIterator[Hub]:
    """Open the hub for commands that use the database, whether or not a server is running."""
    hub = await open_hub(settings)
    try:
        state = await schema_state(hub.db)
        if state is not SchemaState.CURRENT:
            raise StartupError(schema_error(state))
        yield hub
    finally:
        await hub.close()


async def _setup_link(settings: Settings) -> str | None:
    async with opened_for_operator(settings) as hub:
        return hub.accounts.link(setup_path(hub.accounts)) if await setup_is_open(hub.accounts) else None


async def _inspect(settings: Settings) -> SchemaState:
    """The schema state of the database; StartupError if its data was sealed with another secret."""
    if settings.engine.file and not settings.engine.file.exists():
        return SchemaState.EMPTY
    db = await open_database(settings.database_url)
    try:
        state = await schema_state(db)
        if state in (SchemaState.OLDER, SchemaState.CURRENT):
            keys = await db.read(key_store.list_all)
            if keys:
                KeyRing(db, _secret_of(settings), system_clock).require_matching_secret(keys)
        elif not settings.engine.is_local:
            _secret_of(settings)
        return state
    finally:
        await db.close()


def _secret_of(settings: Settings) -> ServerSecret:
    return existing_secret(settings.secret_key, settings.data_dir, settings.engine.is_local)


async def _migrate(settings: Settings) -> bool:
    db = await create_database(settings.database_url)
    try:
        was_behind = await migrate(db, settings.database_url)
        if settings.engine.is_local and not await db.read(key_store.list_all):
            # `admin` and `doctor` need a secret and may run before the first start.
            await _ensure_keys(db, settings)
        return was_behind
    finally:
        await db.close()


async def _prepare(settings: Settings) -> None:
    db = await create_database(settings.database_url)
    try:
        await ensure_current_schema(db, settings.database_url)
        await _ensure_keys(db, settings)
    finally:
        await db.close()


async def _ensure_keys(db: Database, settings: Settings) -> None:
    """Ensure that a server secret and a signing key exist.

    A secret is created only for a hub without sealed data, because a new secret cannot open existing data.
    """
    find_secret = existing_secret if await db.read(key_store.list_all) else existing_or_new_secret
    secret = find_secret(settings.secret_key, settings.data_dir, settings.engine.is_local)
    await KeyRing(db, secret, system_clock).ensure_signing_key()


def with_actual_port(settings: Settings, port: int) -> Settings:
    """The settings with the port that the system chose for port 0, also in the base URL unless it was configured."""
    if settings.port == port:
        return settings
    base_url = settings.raw["base_url"] or default_base_url(settings.host, port)
    raw = {**settings.raw, "port": str(port), "base_url": base_url}
    return replace(settings, port=port, base_url=base_url, raw=raw)


@contextlib.contextmanager
def _metrics_environment(settings: Settings) -> Iterator[dict[str, str]]:
    """The environment of the child processes. If metrics are on, create their folder and start the listener."""
    if not settings.metrics_listen:
        yield dict(os.environ)
        return
    with _metrics_folder(), contextlib.ExitStack() as stack:
        if settings.metrics_listen != f"{settings.host}:{settings.port}":
            stack.callback(metrics.listen(settings.metrics_listen).shutdown)
        yield dict(os.environ)


@contextlib.contextmanager
def background_metrics(settings: Settings) -> Iterator[None]:
    """Serve the metrics of a background process that runs alone. Several may share their settings on one machine: the
    first one serves them, as they describe the whole hub.
    """
    if not settings.metrics_listen:
        yield
        return
    with contextlib.ExitStack() as stack:
        try:
            stack.callback(metrics.listen(settings.metrics_listen).shutdown)
            stack.enter_context(_metrics_folder())
        except StartupError as error:
            log.warning("%s This process runs without metrics.", error)
        yield


@contextlib.contextmanager
def _metrics_folder() -> Iterator[None]:
    """A folder for the metrics of this process and its children, named in the environment."""
    with tempfile.TemporaryDirectory(prefix="hubgate-metrics-") as folder:
        os.environ[metrics.FOLDER_VARIABLE] = folder
        yield
