"""Taking a pack in: the git program reads it from the wire, checks every object and writes it to a quarantine.

The sender is a stranger. Sizes in a pack are claims, so memory is bounded for each claim, and so is the pack.
"""

import asyncio
import logging
import re
from collections.abc import AsyncIterator

from hubgate.server.hub.git import program
from hubgate.server.hub.git.quarantine import Quarantine

log = logging.getLogger("hubgate.git")

MOST_PACK_BYTES = 8 * 1024**3
# What the program may still do once everything has come.
LONGEST_WORK = 15 * 60
# For one claim of a pack: its number of objects, the size of one, of a delta and its result.
LARGEST_CLAIM = 512 * 1024 * 1024
# Larger files pass through without being held in memory.
_STREAMED_FROM = 16 * 1024 * 1024

# Flaws of old histories that harm nobody. All other findings of fsck refuse the push, warnings included.
_TOLERATED = ("badTimezone", "missingSpaceBeforeDate", "zeroPaddedFilemode")
_STRICT = "--strict=" + ",".join(f"{flaw}=ignore" for flaw in _TOLERATED)

_FLAW = re.compile(r"^(?:error|fatal): (object [0-9a-f]{40}: \w+: [\x20-\x7e]{1,200})$", re.MULTILINE)
_REASONS = (
    (re.compile(r"No space left on device|Disk quota exceeded"), "the hub's disk is full"),
    (re.compile(r"exceeds maximum allowed size"), f"a push has at most {MOST_PACK_BYTES // 1024**3} GiB"),
    (re.compile(r"over limit|out of memory"), "something in the pack is too large"),
    (re.compile(r"early EOF|unexpected end of file"), "the pack ended early"),
    (re.compile(r"SHA1 mismatch|SHA1 COLLISION|is corrupted"), "the pack is damaged"),
    (re.compile(r"unresolved delta|Not all child objects|did not receive expected object"), "objects are missing"),
)


class CannotUnpack(Exception):
    """`reason` is one line for the sender; `flaws` say which objects are at fault."""

    def __init__(self, reason: str, flaws: list[str]) -> None:
        super().__init__(reason)
        self.reason, self.flaws = reason, flaws


async def unpack(quarantine: Quarantine, pack: AsyncIterator[bytes]) -> None:
    """Returns once every object is known to be sound. What `pack` raises ends the program first."""
    process = await program.start(
        [
            *("-c", f"core.bigFileThreshold={_STREAMED_FROM}"),
            *("index-pack", "--stdin", "--fix-thin", "--threads=1", _STRICT, f"--max-input-size={MOST_PACK_BYTES}"),
        ],
        quarantine.folder,
        {**quarantine.with_repo, "GIT_ALLOC_LIMIT": str(LARGEST_CLAIM)},
    )
    saying = asyncio.create_task(program.complaints(process))
    try:
        await program.feed(process, pack)
        async with asyncio.timeout(LONGEST_WORK):
            said, status = await saying, await process.wait()
    except TimeoutError:
        raise CannotUnpack("the pack takes too long to check", []) from None
    finally:
        saying.cancel()
        await program.end(process)
    if status:
        log.warning("a pushed pack was refused: %s", said.strip()[:500])
        raise CannotUnpack(*_explained(said))


def _explained(said: str) -> tuple[str, list[str]]:
    """The program's own words may name paths of this machine: only what is known to be harmless is passed on."""
    flaws = _FLAW.findall(said)[:5]
    if flaws:
        return "an object of the pack is not sound", flaws
    return next((reason for pattern, reason in _REASONS if pattern.search(said)), "the pack cannot be read"), []
