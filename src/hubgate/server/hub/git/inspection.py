"""Inspection of pushed objects before they land in the repo: whether they are connected, how large the files are, which
blobs are LFS pointers, whether trees are small enough to walk and their names are valid, and whether commits and tags
are small enough to read.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

from msgspec import Struct
from pygit2.enums import ObjectType

from hubgate.server.errors import Unavailable
from hubgate.server.hub.git import program
from hubgate.server.hub.git.objects import MAX_POINTER_BYTES, Pointer, pointer_text, read_pointer
from hubgate.server.hub.git.quarantine import Quarantine
from hubgate.server.hub.git.threads import in_thread
from hubgate.server.hub.git.tree_limits import TreeMeasurer

log = logging.getLogger("hubgate.git")

# Further invalid pointers are not reported.
MAX_BAD_POINTERS = 1_000
# Commits collected; larger pushes are not marked commit by commit (hub/guests/marked_commits.py).
MAX_COMMITS = 10_000
# Commits and tags are read whole, by requests of anyone. Signatures and the tags that a merge includes take some KB.
MAX_MESSAGE_OBJECT_BYTES = 1024 * 1024
INSPECTION_SECONDS = 15 * 60
PATH_SEARCH_SECONDS = 60
_CHUNK = 64 * 1024
_MIN_POINTER_BYTES = len(pointer_text("0" * 64, 0))
_FORMAT = "%(objectname) %(objecttype) %(objectsize)"


# Returns the problem of each invalid pointer by the id of its blob.
CheckPointers = Callable[[Mapping[str, Pointer]], Awaitable[Mapping[str, str]]]


@dataclass
class Findings:
    """The results of inspecting a push. Problems are keyed by the id of the blob or tree."""

    objects: int = 0
    oversized_files: dict[str, int] = field(default_factory=dict)
    oversized_messages: dict[str, int] = field(default_factory=dict)
    bad_pointers: dict[str, str] = field(default_factory=dict)
    oversized_trees: list[str] = field(default_factory=list)
    bad_names: dict[str, str] = field(default_factory=dict)
    # Whether the push has more objects than allowed. The rest is not inspected.
    too_many_objects: bool = False
    # The first pushed commits, at most one more than MAX_COMMITS.
    commits: list[str] = field(default_factory=list)


class _Object(Struct, frozen=True):
    sha: str
    type: str
    size: int


async def inspect(
    quarantine: Quarantine, max_objects: int, max_file_bytes: int, check_pointers: CheckPointers
) -> Findings:
    """Inspect every pushed object once, reachable or not, so that none lands unchecked. Pointers are checked in
    batches: millions of them fit into a small pack, but not into memory.
    """
    findings, measurer = Findings(), TreeMeasurer()
    try:
        async with asyncio.timeout(INSPECTION_SECONDS):
            await _inspect(quarantine, max_objects, max_file_bytes, check_pointers, findings, measurer)
    except TimeoutError:
        raise Unavailable("The push takes too long to check. Push it in parts.", retry_after=60) from None
    findings.bad_names |= {sha.hex(): problem for sha, problem in measurer.bad_names.items()}
    return findings


async def _inspect(
    quarantine: Quarantine,
    max_objects: int,
    max_file_bytes: int,
    check_pointers: CheckPointers,
    findings: Findings,
    measurer: TreeMeasurer,
) -> None:
    listed = _list_objects(quarantine)
    async with aclosing(listed):
        async for objects in listed:
            findings.objects += len(objects)
            if findings.objects > max_objects:
                findings.too_many_objects = True
                return
            for item in objects:
                if item.type == "blob" and item.size > max_file_bytes:
                    findings.oversized_files[item.sha] = item.size
                elif item.type in ("commit", "tag") and item.size > MAX_MESSAGE_OBJECT_BYTES:
                    findings.oversized_messages[item.sha] = item.size
                elif item.type == "commit" and len(findings.commits) <= MAX_COMMITS:
                    findings.commits.append(item.sha)
            pointers = await in_thread(_read, quarantine, objects, findings, measurer)
            if pointers and len(findings.bad_pointers) < MAX_BAD_POINTERS:
                findings.bad_pointers |= await check_pointers(pointers)


async def is_connected(quarantine: Quarantine, tips: Sequence[str]) -> bool:
    """Whether all objects reachable from `tips` exist, down to the commits of existing refs."""
    stdin = "".join(f"{tip}\n" for tip in tips).encode()
    # The same check that git runs after a push (connected.c).
    command = ["rev-list", "--objects", "--stdin", "--not", "--all", "--quiet"]
    try:
        await program.run(command, quarantine.folder, stdin, quarantine.env_with_repo, seconds=INSPECTION_SECONDS)
    except (program.GitFailed, Unavailable) as error:
        log.warning("the objects of a push are incomplete or could not be checked: %s", error)
        return False
    return True


async def has_unreachable_objects(quarantine: Quarantine, tips: Sequence[str]) -> bool:
    """Whether the push has new objects that are not reachable from `tips`, which must be connected. Objects are
    counted, not collected: there may be millions.
    """
    received = reached = 0
    listed = _list_objects(quarantine)
    async with aclosing(listed):
        async for objects in listed:
            received += len(await quarantine.not_in_repo([item.sha for item in objects]))
    stdin = "".join(f"{tip}\n" for tip in tips).encode()
    command = ["rev-list", "--objects", "--no-object-names", "--stdin", "--not", "--all"]
    walked = program.lines(command, quarantine.folder, stdin, INSPECTION_SECONDS, quarantine.env_with_repo)
    async with aclosing(walked):
        async for lines in walked:
            reached += len(await quarantine.not_in_repo([line.decode() for line in lines]))
    return reached < received


async def commits_among(quarantine: Quarantine, shas: Collection[str]) -> set[str]:
    """The objects that are commits. All objects must exist."""

    def work() -> set[str]:
        objects = quarantine.opened().odb
        return {sha for sha in set(shas) if objects.read_header(sha)[0] == ObjectType.COMMIT}

    return await in_thread(work)


async def paths_of(quarantine: Quarantine, tips: Sequence[str], shas: set[str]) -> dict[str, str]:
    """A path of each of `shas` in the history of `tips`, for messages; those not found in time are omitted."""
    process = await program.start(
        ["rev-list", "--objects", "--stdin", "--not", "--all"], quarantine.folder, quarantine.env_with_repo
    )
    found: dict[str, str] = {}
    try:
        process.stdin.write("".join(f"{tip}\n" for tip in tips).encode())
        process.stdin.close()
        async with asyncio.timeout(PATH_SEARCH_SECONDS):
            async for lines in _lines(process.stdout):
                for line in lines:
                    # A path may have megabytes, and only its start is shown.
                    sha, _, path = line[:1000].decode(errors="replace").partition(" ")
                    if sha in shas and path:
                        found.setdefault(sha, path[:200])
                if len(found) == len(shas):
                    break
    except TimeoutError:
        log.warning("the paths of rejected files were not found in time")
    finally:
        await process.kill()
    return found


async def _list_objects(quarantine: Quarantine) -> AsyncGenerator[list[_Object], None]:
    process = await program.start(
        ["cat-file", f"--batch-check={_FORMAT}", "--batch-all-objects", "--unordered"],
        quarantine.folder,
        quarantine.env_without_repo,
    )
    try:
        async for lines in _lines(process.stdout):
            fields = [line.decode().split(" ") for line in lines]
            yield [_Object(sha, kind, int(size)) for sha, kind, size in fields]
        stderr, status = await program.read_stderr(process), await process.wait()
        if status:
            raise program.failure("cat-file", status, stderr, quarantine.folder)
    finally:
        await process.kill()


async def _lines(stream: asyncio.StreamReader) -> AsyncIterator[list[bytes]]:
    """Yield the whole lines of each chunk. A line may exceed the limit of the stream's line reader."""
    partial = b""
    while part := await stream.read(_CHUNK):
        *lines, partial = (partial + part).split(b"\n")
        if lines:
            yield lines
    if partial:
        yield [partial]


def _read(
    quarantine: Quarantine, objects: Sequence[_Object], findings: Findings, measurer: TreeMeasurer
) -> dict[str, Pointer]:
    """Read the LFS pointers among the objects and record trees that are too large."""
    odb, pointers = quarantine.opened().odb, dict[str, Pointer]()
    for item in objects:
        if item.type == "blob" and _MIN_POINTER_BYTES <= item.size <= MAX_POINTER_BYTES:
            pointer = read_pointer(odb.read(item.sha)[1])
            if pointer is not None:
                pointers[item.sha] = pointer
        elif item.type == "tree" and measurer.measure(odb, bytes.fromhex(item.sha)).exceeds_limits:
            findings.oversized_trees.append(item.sha)
    return pointers
