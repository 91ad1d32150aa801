"""Unpacking a pushed pack: the git program reads it from the network, checks every object and writes to a quarantine.

The sender is not trusted. A pack can state any sizes, so each allocation and the size of the whole pack are limited.
"""

import asyncio
import logging
import re
from collections.abc import AsyncIterator

from hubgate.server.hub.git import program
from hubgate.server.hub.git.quarantine import Quarantine

log = logging.getLogger("hubgate.git")

MAX_PACK_BYTES = 8 * 1024**3
# Bytes of the pack of a push that has no new objects.
_EMPTY_PACK = 32
# Seconds of work after the whole pack was received.
CHECK_SECONDS = 15 * 60
# Bytes that git may allocate at once for a size that the pack states: of an object, of a delta and its result, or of
# the list of objects.
MAX_ALLOCATION = 512 * 1024 * 1024
# Larger files are streamed instead of being read into memory.
_STREAMING_THRESHOLD = 16 * 1024 * 1024

# Harmless flaws of old histories. All other findings of fsck reject the push, warnings included.
_TOLERATED = ("badTimezone", "missingSpaceBeforeDate", "zeroPaddedFilemode")
_STRICT = "--strict=" + ",".join(f"{flaw}=ignore" for flaw in _TOLERATED)

_FLAW = re.compile(r"^(?:error|fatal): (object [0-9a-f]{40}: \w+: [\x20-\x7e]{1,200})$", re.MULTILINE)
_TOO_MANY_BYTES = re.compile(r"exceeds maximum allowed size")
_REASONS = (
    (re.compile(r"No space left on device|Disk quota exceeded"), "the hub's disk is full"),
    (re.compile(r"over limit|out of memory"), "an object of the pack is too large"),
    (re.compile(r"early EOF|unexpected end of file"), "the pack ended early"),
    (re.compile(r"SHA1 mismatch|SHA1 COLLISION|is corrupted"), "the pack is damaged"),
    (re.compile(r"unresolved delta|Not all child objects|did not receive expected object"), "objects are missing"),
)


class InvalidPack(Exception):
    """The pack was rejected. `reason` is one line for the sender; `flaws` name the invalid objects."""

    def __init__(self, reason: str, flaws: list[str]) -> None:
        super().__init__(reason)
        self.reason, self.flaws = reason, flaws


class PackTooLarge(InvalidPack):
    """The pack exceeds its limit. The sender is notified before all of the pack is read."""


async def unpack(
    quarantine: Quarantine, pack: AsyncIterator[bytes], max_bytes: int = MAX_PACK_BYTES, *, thin: bool = True
) -> None:
    """Unpack into the quarantine; return once every object is valid. An exception from `pack` kills the program.
    With `thin`, the pack may contain deltas to objects of the repo.
    """
    # For git, 0 means no limit.
    max_bytes = min(max(max_bytes, _EMPTY_PACK), MAX_PACK_BYTES)
    process = await program.start(
        [
            *("-c", f"core.bigFileThreshold={_STREAMING_THRESHOLD}"),
            *("index-pack", "--stdin", "--threads=1", _STRICT, f"--max-input-size={max_bytes}"),
            *(("--fix-thin",) if thin else ()),
        ],
        quarantine.folder,
        {**quarantine.env_with_repo, "GIT_ALLOC_LIMIT": str(MAX_ALLOCATION)},
    )
    stderr_task = asyncio.create_task(program.read_stderr(process))
    try:
        await program.feed(process, pack)
        async with asyncio.timeout(CHECK_SECONDS):
            stderr, status = await stderr_task, await process.wait()
    except TimeoutError:
        raise InvalidPack("the pack takes too long to check", []) from None
    finally:
        stderr_task.cancel()
        await process.kill()
    if status:
        log.warning("a pushed pack was rejected: %s", stderr.strip()[:500])
        if _TOO_MANY_BYTES.search(stderr):
            raise PackTooLarge(f"a push may have at most {MAX_PACK_BYTES // 1024**3} GiB", [])
        raise InvalidPack(*_explain(stderr))


def _explain(stderr: str) -> tuple[str, list[str]]:
    """Turn stderr into a reason and flaws for the sender. Only known text is passed on: stderr may have local paths."""
    flaws = _FLAW.findall(stderr)[:5]
    if flaws:
        return "an object of the pack is invalid", flaws
    return next((reason for pattern, reason in _REASONS if pattern.search(stderr)), "the pack cannot be read"), []
