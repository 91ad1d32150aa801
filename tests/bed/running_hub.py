"""A hub on a real socket in a thread of the test process: the real server with a frozen clock."""

import asyncio
import io
import logging
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

import httpx
from msgspec.structs import replace
from tests.bed import testbuild
from tests.bed.clock import FrozenClock
from tests.bed.lean_http import LeanClient

from hubgate.server.egress.client import Egress
from hubgate.server.hub.context import Limits
from hubgate.server.logs import JsonFormatter, LineHandler
from hubgate.server.resources import Hub, open_hub
from hubgate.server.settings import Settings
from hubgate.server.startup import with_actual_port
from hubgate.server.worker.servers import SERVERS
from hubgate.server.worker.supervisor import bind

T = TypeVar("T")


@dataclass
class RunningHub:
    settings: Settings
    clock: FrozenClock = field(default_factory=FrozenClock)
    # Replaces the hub's egress, if given.
    egress: Egress | None = None
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        self._listener = bind(self.settings.host, self.settings.port)
        self.settings = with_actual_port(self.settings, self._listener.getsockname()[1])
        self._log = io.StringIO()
        self._log_handler = LineHandler(self._log, JsonFormatter())
        self._up = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def url(self) -> str:
        return self.settings.base_url

    @property
    def address(self) -> tuple[str, int]:
        return self.settings.host, self.settings.port

    @property
    def log(self) -> str:
        """The log so far, in the operator's format."""
        self._log_handler.flush()
        return self._log.getvalue()

    def client(self, **options: object) -> httpx.Client:
        return LeanClient(base_url=self.url, timeout=60, **options)

    def call(self, work: Callable[[Hub], Awaitable[T]]) -> T:
        """Run a use case on the hub's event loop."""

        async def run() -> T:
            return await work(self._hub)

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result(120)

    def start(self) -> None:
        self._thread.start()
        if not self._up.wait(60) or self._failure:
            raise RuntimeError("the hub did not start") from self._failure

    def stop(self) -> None:
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(60)
        assert not self._thread.is_alive(), "the hub did not stop"

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:
            self._failure = error
            self._up.set()

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        logging.getLogger().addHandler(self._log_handler)
        logging.getLogger("hubgate").setLevel(logging.INFO)
        opened = await open_hub(self.settings, self.clock)
        self._hub = replace(opened, egress=self.egress or opened.egress, limits=self.limits)
        try:
            server = SERVERS[self.settings.server]
            await server(testbuild.build(self._hub), self._listener, self._stop, self._up.set, self._hub.end_streams)
        finally:
            await self._hub.close()
            logging.getLogger().removeHandler(self._log_handler)
            self._listener.close()


@contextmanager
def run_hub(settings: Settings, egress: Egress | None = None, limits: Limits | None = None) -> Iterator[RunningHub]:
    hub = RunningHub(settings, egress=egress, limits=limits or Limits())
    hub.start()
    try:
        yield hub
    finally:
        hub.stop()
