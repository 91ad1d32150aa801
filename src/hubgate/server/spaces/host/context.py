"""The dependencies of the process that runs Spaces."""

from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct

from hubgate.server.egress.client import Egress
from hubgate.server.hub.git.folders import Folders
from hubgate.server.mail.outbox import Outbox
from hubgate.server.spaces.context import Spaces
from hubgate.server.spaces.runner import Limits, Runner


class Pace(Struct, frozen=True):
    """Times in seconds. Tests pass shorter ones."""

    # For an app to listen on its port.
    start: float = 120.0
    # For an app to end after SIGTERM.
    grace: float = 10.0
    # For all apps when the hub stops.
    last_grace: float = 3.0
    # After the first crash; doubled after each.
    backoff: float = 1.0
    # An app that has run for this long does not count its earlier crashes.
    stable: float = 60.0
    # Without a change of a heartbeat, until others run the Spaces of a process.
    dead_after: float = 20.0
    poll: float = 1.0
    use: float = 5.0


class HostContext(Struct, frozen=True):
    spaces: Spaces
    runner: Runner
    limits: Limits
    folders: Folders
    egress: Egress
    outbox: Outbox
    # Private to the hub.
    folder: Path
    index: str
    # Spaces at once, on this machine and of one owner.
    max_running: int
    max_per_owner: int
    pace: Pace = Pace()

    @property
    def hub_address(self) -> tuple[str, int]:
        return _address(self.spaces.base_url)

    @property
    def index_addresses(self) -> set[tuple[str, int]]:
        return {_address(self.index)} if self.index else set()


def _address(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    return (parts.hostname or "").lower(), parts.port or (443 if parts.scheme == "https" else 80)
