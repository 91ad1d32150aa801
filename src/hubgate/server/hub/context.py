"""The dependencies, limits and locks that the use cases of repos share."""

import asyncio
from collections.abc import Awaitable, Callable
from weakref import WeakValueDictionary

from msgspec import Struct, field

from hubgate.server.clock import Clock
from hubgate.server.hub.git.folders import Folders
from hubgate.server.hub.lfs.files import LargeFiles
from hubgate.server.jobs.slots import Slots
from hubgate.server.mail.outbox import Outbox
from hubgate.server.objects.model import Objects
from hubgate.server.secret import ServerSecret
from hubgate.server.storage.database import Database, Tx
from hubgate.server.throttle.rate_limiter import Limiter


class Limits(Struct, frozen=True):
    """Limits that are not operator settings. The values are injected so that tests can lower them."""

    # Bytes per part of a multipart upload, and the file size from which multipart is worth the second write.
    part_bytes: int = 64 * 1024 * 1024
    multipart_threshold: int = 512 * 1024 * 1024
    # An object store that accepts or sends nothing for this long is given up, and failed requests are repeated for this
    # long; the size from which content is sent to it in parts, and the bytes of a part.
    store_silence_seconds: float = 20.0
    store_retry_seconds: float = 15.0
    store_single_bytes: int = 64 * 1024 * 1024
    store_part_bytes: int = 32 * 1024 * 1024
    # Downloads that a web process reads from the store at once, in all and for one caller, and how long others wait.
    # Each occupies a connection to the store until its client has read everything, and the pool has 512 of them
    # (`objects/s3/transport.py`): without a limit, one slow reader of many files would leave none for uploads and
    # others. An existing client reads 64 ranges of a file at once.
    store_downloads: int = 384
    store_downloads_per_caller: int = 128
    store_download_wait_seconds: float = 30.0
    # Objects in one push. Inspection stores an entry for every tree.
    pushed_objects: int = 2_000_000
    # For matching all paths of a request: rules written to be slow could take hours.
    matching_seconds: float = 10.0
    # For counting the commits of all refs that one request moves; the rest is counted in the background.
    counting_seconds: float = 10.0
    # For each git program that merges or compares commits of a pull request.
    merging_seconds: float = 20.0
    # A client that reads nothing from a download or fetch for this long has disconnected or is an attacker.
    stall_seconds: float = 5 * 60.0
    # Interval of keep-alives during a push: proxies drop a response that is silent for a minute.
    keepalive_seconds: float = 5.0
    # A service behind the gateway that is silent for this long is given up: completions can take minutes.
    upstream_silence_seconds: float = 10 * 60.0
    # How often the permission of a forwarded request is checked again: logs of jobs stream for days.
    permission_check_seconds: float = 60.0
    # Requests that a web process forwards at once, in all and for one user, and how long others wait for a slot.
    forwarded_requests: int = 2048
    forwarded_per_user: int = 256
    forwarding_wait_seconds: float = 30.0
    # Live streams of events in a web process, in all and for one user; the interval of comments in them; and how long a
    # client may read nothing, because its part of the stream waits in memory.
    streams: int = 5000
    streams_per_user: int = 1500
    stream_comment_seconds: float = 15.0
    stream_stall_seconds: float = 30.0
    # Temporary links to receivers: how long a POST waits for the receiver's answer; POSTs a minute, and requests
    # without an answer, of one link; and how long the receiver's program may send nothing, and accept nothing.
    tunnel_answer_seconds: float = 15.0
    tunnel_posts: int = 600
    tunnel_waiting: int = 32
    tunnel_silence_seconds: float = 60.0
    tunnel_stall_seconds: float = 15.0
    # Files, xorbs, chunks and bytes that one shard may name: all of them are looked up, read and hashed.
    shard_files: int = 100_000
    shard_xorbs: int = 50_000
    shard_chunks: int = 20_000_000
    shard_bytes: int = 1 << 40
    # References of files to xorbs that are registered in one transaction: others wait for its lock on the repo, or with
    # SQLite on the database.
    registered_files: int = 2_000
    # Terms of one file: all of them, 48 bytes each, are in memory during every download. A term is a range of up to
    # 64 MiB in new content. Where content is shared with other files, the reference client ends sharing at an average
    # of four chunks of 64 KiB for each term, so every file of up to 50 GB is accepted, and usually one of a terabyte.
    file_terms: int = 200_000
    # Chunks in the answer to a look-up, after which no xorb is added: about three megabytes. A xorb usually has 1,000.
    lookup_chunks: int = 64 * 1024
    # Apps that registered themselves.
    self_registered_apps: int = 10_000
    # Branches and tags of a repo: every clone receives the whole list.
    refs: int = 50_000
    # Repos swept for guest data in one step of housekeeping.
    swept_repos: int = 50


class BranchLocks(Struct, frozen=True):
    """Queues the commits to a branch within a process. Without a queue each commit that lands forces all others to
    rewrite their trees: seventy concurrent commits wrote two thousand trees. Between processes, and against pushes, the
    compare-and-swap of the ref decides.
    """

    # A lock exists as long as a task owns it or waits for it.
    _locks: WeakValueDictionary[tuple[str, str], asyncio.Lock] = field(default_factory=WeakValueDictionary)

    def on(self, repo_id: str, ref: str) -> asyncio.Lock:
        """The lock of a branch. Waiting tasks get it in order of arrival."""
        return self._locks.setdefault((repo_id, ref), asyncio.Lock())


OnUnlinked = Callable[[Tx, str], Awaitable[None]]
# Called with the id of a Space, its card as JSON, and the time.
OnSpaceContent = Callable[[Tx, str, str, int], Awaitable[None]]


class Repos(Struct, frozen=True):
    """The dependencies of every use case of repos."""

    db: Database
    clock: Clock
    secret: ServerSecret
    limiter: Limiter
    base_url: str
    folders: Folders
    large_files: LargeFiles
    # A file up to this size may be sent inside a commit, regardless of .gitattributes.
    regular_upload_max: int
    # Bytes of large files per owner; 0 for no limit. Operators can set another limit for an owner.
    storage_quota: int
    # Called with a repo's id, in the transaction that deletes a redirect to the repo.
    on_unlinked: OnUnlinked
    # Called in the transaction that creates or renames a Space, or moves its main branch.
    on_space_content: OnSpaceContent
    # Limits for guests: open pull requests per repo, and total bytes stored in all repos they may not write to.
    guest_pull_requests: int
    guest_bytes: int
    outbox: Outbox
    # Limits downloads that this process reads from the store.
    store_downloads: Slots
    limits: Limits = field(default_factory=Limits)
    branch_locks: BranchLocks = field(default_factory=BranchLocks)
    # Limits concurrent verifications of uploaded files, which read and hash all of their content.
    verifications: Slots = field(
        default_factory=lambda: Slots(4, 2, "Too many uploads are being verified. Try again.", 600.0, max_per_repo=2)
    )
    # Limits concurrent git programs that walk a history.
    walks: Slots = field(
        default_factory=lambda: Slots(4, 1, "Too many long histories are being read. Try again.", max_per_repo=2)
    )

    @property
    def objects(self) -> Objects:
        """The store of large content."""
        return self.large_files.objects
