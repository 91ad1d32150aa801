"""Runs the demo: fills the hub at the first start, then serves the hub, the app and the receiver until a signal."""

import asyncio
import contextlib
import logging
import os
import signal
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from starlette.types import ASGIApp

from hubgate.demo import seeding, tour
from hubgate.demo.connecting import connect
from hubgate.demo.example_app import ExampleApp
from hubgate.demo.example_receiver import create_receiver
from hubgate.demo.past_receiver import PastReceiver
from hubgate.demo.state import State, open_folder
from hubgate.receiver import launch
from hubgate.server.hub.git.program import require_git
from hubgate.server.settings import Settings
from hubgate.server.startup import migrate_database, serve
from hubgate.server.worker.supervisor import MODULES, Modules, bind


@dataclass(frozen=True)
class Demo:
    """What the demo is run with. `settings` has the port that the hub will listen on."""

    settings: Settings
    # 0: the next port after the hub's, or any free one.
    app_port: int
    receiver_port: int
    write: Callable[[str], None]
    modules: Modules = MODULES

    @property
    def folder(self) -> Path:
        return self.settings.data_dir


def run(demo: Demo, *, reset: bool) -> None:
    """Serve until SIGTERM or SIGINT. A signal while the hub is filled ends the demo, and the next start begins anew."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _exit)
    # Fail before anything is deleted or written.
    require_git()
    bind(demo.settings.host, demo.settings.port).close()
    with contextlib.ExitStack() as ending:
        app_listener = ending.enter_context(_listen(demo.app_port, demo.settings.port + 1))
        receiver_listener = ending.enter_context(_listen(demo.receiver_port, demo.settings.port + 2))
        addresses = tour.Addresses(
            demo.settings.base_url, launch.url_of(app_listener), launch.url_of(receiver_listener)
        )
        state = open_folder(demo.folder, reset=reset)
        if not state.complete:
            demo.write("Creating accounts, repos and a month of activity (a few seconds)")
            _fill(demo, state, addresses, receiver_listener)
        else:
            migrate_database(demo.settings)
            asyncio.run(connect(demo.settings, state, addresses))
        tour.write_environments(demo.folder, state, addresses)
        app = ExampleApp(addresses.hub, addresses.app, state.app_id, state.app_secret)
        # The library's line for each delivery would repeat what the receiver reports.
        logging.getLogger("hubgate.receiver").setLevel(logging.WARNING)
        receiver = create_receiver(addresses.hub, state.tokens["ada"], state.webhook_secret, _reporter(demo))
        with _serving(app.asgi(), app_listener), _serving(receiver, receiver_listener):
            serve(demo.settings, lambda *_: demo.write(tour.text(demo.folder, state, addresses)), demo.modules)


def _exit(*_: object) -> None:
    """Exit while the hub is filled. An exception could be raised anywhere, also while a file is being opened."""
    os._exit(0)


def _fill(demo: Demo, state: State, addresses: tour.Addresses, listener: socket.socket) -> None:
    migrate_database(demo.settings)
    # Requests and warnings of the month that is lived through, such as failing webhooks, are not the operator's.
    logging.getLogger().setLevel(logging.ERROR)
    receiver = PastReceiver()
    with _serving(receiver.app, listener.dup()):
        asyncio.run(seeding.seed(demo.settings, state, addresses.app, addresses.receiver, receiver))
    logging.getLogger().setLevel(logging.INFO)
    state.complete = True
    state.save(demo.folder)


def _listen(port: int, preferred: int) -> socket.socket:
    if port:
        return launch.listen("127.0.0.1", port)
    try:
        return launch.listen("127.0.0.1", preferred)
    except (OSError, OverflowError):
        return launch.listen("127.0.0.1", 0)


@contextlib.contextmanager
def _serving(app: ASGIApp, listener: socket.socket) -> Iterator[None]:
    server = launch.Server(app, listener)
    server.run_in_thread()
    try:
        yield
    finally:
        server.stop()


def _reporter(demo: Demo) -> Callable[[str], None]:
    return lambda line: demo.write(f"receiver: {line}")
