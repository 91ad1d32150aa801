"""What every use case of repos needs, in one value."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from hubgate.server.clock import Clock
from hubgate.server.hub.commits.turns import Turns
from hubgate.server.hub.git.folders import Folders
from hubgate.server.hub.lfs.files import LargeFiles
from hubgate.server.hub.limits import Limits
from hubgate.server.jobs.slots import Slots
from hubgate.server.secret import ServerSecret
from hubgate.server.storage.database import Database, Tx


@dataclass(frozen=True)
class Repos:
    db: Database
    clock: Clock
    secret: ServerSecret
    base_url: str
    folders: Folders
    large_files: LargeFiles
    # A file up to this size may come inside a commit, whatever .gitattributes says.
    regular_upload_max: int
    # In the unit that unlinks a former name of the repo with this id.
    on_unlinked: Callable[[Tx, str], Awaitable[None]]
    # Of a user who may not write to a repo: pull requests open in it, and bytes held in all such repos.
    guest_pull_requests: int
    guest_bytes: int
    limits: Limits = field(default_factory=Limits)
    turns: Turns = field(default_factory=Turns)
    # For programs that walk through a history.
    walks: Slots = field(
        default_factory=lambda: Slots(4, 1, "Too many long histories are being read. Try again.", most_of_repo=2)
    )
