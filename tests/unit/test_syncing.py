"""Everything that a ref will point at is synced to disk before a commit returns.

A power cut cannot be tested. What can be observed is which files this process opened to sync: the library that writes
objects opens its own files unnoticed by the interpreter.
"""

import sys
from pathlib import Path

from tests.bed.clock import START

from hubgate.server.hub.git.folders import Folders
from hubgate.server.hub.git.objects import blob_of, repository
from hubgate.server.hub.git.threads import in_thread
from hubgate.server.hub.git.writes import (
    Author,
    NewCommit,
    Put,
    PutContent,
    Remove,
    write_blob,
    write_commit,
    write_file_as_blob,
    write_first_commit,
    write_squashed_commit,
    write_tag,
)

ADA = Author("ada", "ada@example.org")
OPENED: set[str] = set()


def _notice(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open" and "/objects" in str(arguments[0]):
        OPENED.add(str(arguments[0]))


# An audit hook cannot be removed; it costs little.
sys.addaudithook(_notice)


def unsynced(folder: Path) -> set[str]:
    """Objects and their folders that were written and not synced."""
    files = set((folder / "objects").glob("??/*"))
    assert files
    return {str(place) for place in {*files, *(file.parent for file in files)}} - OPENED


async def test_everything_a_commit_wrote_is_synced(tmp_path: Path) -> None:
    folder = Folders(tmp_path).create("a" * 24)
    first = await write_first_commit(folder, {"README.md": b"# Tiny", "d/e/f.txt": b"1"}, "initial commit", ADA, START)
    assert unsynced(folder) == set()
    (tmp_path / "large").write_bytes(b"x" * 100_000)
    blobs = [await write_blob(folder, b"2"), await write_file_as_blob(folder, tmp_path / "large")]
    assert len(unsynced(folder)) >= len(blobs), "with their commit"
    assert blob_of(repository(folder), blobs[1]).data == b"x" * 100_000
    assert not list(folder.glob("objects/pack/*")), "nothing half done is left"
    changes = [Remove("README.md"), Put("d/e/f.txt", blobs[0]), Put("new/large", blobs[1])]
    second = await write_commit(folder, NewCommit(first, changes, "A change", ADA, START))
    assert unsynced(folder) == set()
    await in_thread(write_squashed_commit, folder, second, "All of it", ADA, START)
    assert unsynced(folder) == set()
    await write_tag(folder, "v1", second, "As published", ADA, START)
    assert unsynced(folder) == set()
    await write_commit(folder, NewCommit(None, [], "Empty", ADA, START))
    assert unsynced(folder) == set()
    few = [PutContent(f"few/{number}", b"few %d" % number) for number in range(40)]
    await write_commit(folder, NewCommit(second, few, "Content written with the commit", ADA, START))
    assert unsynced(folder) == set()
