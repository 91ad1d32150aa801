"""The seam between Spaces and the runner that executes their code.

A runner installs requirements, starts apps and ends them, each in isolation and within limits. It knows neither the
database nor HTTP routes. `tests/spaces/test_conformance.py` is the specification: every runner passes all of it.
"""

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

MIB = 1024 * 1024

# Gets lines of the app's output and of the runner, without line breaks. Called from the event loop; does not block.
Log = Callable[[str], None]

P = TypeVar("P", bound=asyncio.BaseProtocol)


@dataclass(frozen=True)
class Limits:
    """What one Space may use."""

    # In cores.
    cpu: float = 1.0
    # In bytes, files in the work folder included: they are stored in memory.
    memory: int = 1024 * MIB
    processes: int = 128
    # In bytes: the work folder, and separately the installed requirements.
    disk: int = 512 * MIB
    build_seconds: float = 900.0

    @property
    def work_folder(self) -> int:
        """The bytes of an app's files. They count towards the limit of memory, which must be reached later."""
        return min(self.disk, self.memory // 2)


@dataclass(frozen=True)
class LimitsTogether:
    """What all Spaces of a machine may use together, in bytes."""

    memory: int
    # Of installed requirements.
    disk: int


@dataclass(frozen=True)
class App:
    """One version of a Space's app."""

    # The id of the Space, which never changes.
    space: str
    # A tar archive of the Space's files.
    source: Path
    app_file: str
    # The lines of requirements.txt; empty if there is nothing to install.
    requirements: str
    # A version among `Runner.pythons()`.
    python: str
    # Variables and secrets. The runner adds the address to listen on and the proxy.
    environment: dict[str, str]
    limits: Limits
    # The socket of the proxy for outgoing requests (`proxy.py`), while requirements are installed and while it runs.
    build_proxy: Path
    proxy: Path
    # Host of the hub's own address, which must not be excluded from the proxy.
    hub_host: str
    # The package index for requirements; empty for the index that pip is configured with.
    index: str = ""


@dataclass(frozen=True)
class Environment:
    """Installed requirements, as the runner names them; empty if there are none."""

    id: str


@dataclass(frozen=True)
class Exit:
    """How an app ended, as a sentence for the Space's owner."""

    reason: str
    status: int


@dataclass(frozen=True)
class Use:
    cpu_seconds: float
    memory: int
    processes: int


class BuildFailed(Exception):
    """The requirements could not be installed. The message is for the Space's owner."""


class NotListening(Exception):
    """The app did not listen on its port in time, or ended before. The message is for the Space's owner."""

    def __init__(self, message: str, *, has_ended: bool) -> None:
        super().__init__(message)
        self.has_ended = has_ended


class Running(Protocol):
    """An app that was started."""

    async def until_listening(self, seconds: float) -> None:
        """Wait until the app accepts connections; NotListening if it does not within this time."""

    async def connect(self, protocol: Callable[[], P]) -> P:
        """A connection to the app's port. Closed at once if the app does not accept it; OSError if it has ended."""

    async def wait(self) -> Exit:
        """Wait until the app has ended, and nothing of it is left."""

    async def stop(self, grace: float) -> Exit:
        """Ask the app to end (SIGTERM), and after `grace` seconds end it with everything that it started."""

    def use(self) -> Use: ...


class Runner(Protocol):
    def problems(self) -> list[str]:
        """Why this machine cannot run Spaces, each a sentence with what to do; empty if it can."""

    def pythons(self) -> list[str]:
        """The versions of Python that apps may choose, such as 3.11; the hub's own first."""

    async def sweep(self) -> None:
        """End apps that a process left behind which has died, and delete their files."""

    async def build(self, app: App, log: Log) -> Environment:
        """Install the app's requirements, unless they are installed; BuildFailed if that fails."""

    async def start(self, app: App, environment: Environment, log: Log) -> Running: ...

    async def forget(self, space: str) -> None:
        """Install the requirements of a Space again with its next build. An app that runs keeps its own."""

    async def retain(self, spaces: Collection[str]) -> None:
        """Delete what is installed for other Spaces, which were deleted."""

    async def close(self) -> None:
        """End everything that this runner started."""
