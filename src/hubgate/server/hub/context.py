"""The dependencies that every use case of repos needs, in one value."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from hubgate.server.clock import Clock
from hubgate.server.hub.commits.branch_locks import BranchLocks
from hubgate.server.hub.git.folders import Folders
from hubgate.server.hub.lfs.files import LargeFiles
from hubgate.server.hub.limits import Limits
from hubgate.server.jobs.slots import Slots
from hubgate.server.secret import ServerSecret
from hubgate.server.storage.database import Database, Tx
from hubgate.server.throttle.rate_limiter import Limiter

OnUnlinked = Callable[[Tx, str], Awaitable[None]]


@dataclass(frozen=True)
class Repos:
    db: Database
    clock: Clock
    secret: ServerSecret
    limiter: Limiter
    base_url: str
    folders: Folders
    large_files: LargeFiles
    # A file up to this size may be sent inside a commit, regardless of .gitattributes.
    regular_upload_max: int
    # Called in the transaction that unlinks a former name of the repo with this id.
    on_unlinked: OnUnlinked
    # Limits for a user without write permission: open pull requests per repo, and bytes stored in all such repos.
    guest_pull_requests: int
    guest_bytes: int
    limits: Limits = field(default_factory=Limits)
    turns: BranchLocks = field(default_factory=BranchLocks)
    # For git programs that walk a history.
    walks: Slots = field(
        default_factory=lambda: Slots(4, 1, "Too many long histories are being read. Try again.", most_of_repo=2)
    )
