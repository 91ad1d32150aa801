"""The copy of the refs on disk survives a power failure, or is written again.

A power failure cannot be tested. What can be observed is the order in which this process syncs and renames files.
"""

import os
import sys
from pathlib import Path

import pytest
from tests.git.conftest import Scene

pytestmark = pytest.mark.one_engine

SEEN: list[tuple[str, str]] = []


def _notice(event: str, arguments: tuple[object, ...]) -> None:
    if event == "os.rename":
        SEEN.append(("rename", str(arguments[1])))
    # A file that is opened by descriptor, for reading only: to be synced.
    elif event == "open" and arguments[1] is None and not int(str(arguments[2])) & (os.O_RDWR | os.O_WRONLY):
        SEEN.append(("sync", str(arguments[0])))


# An audit hook cannot be removed; it costs little.
sys.addaudithook(_notice)


def test_refs_are_synced_before_their_version_is_written(scene: Scene) -> None:
    """A version that survives without its refs would make outdated refs look current."""
    SEEN.clear()
    assert scene.client.get("/ada/tiny.git/info/refs?service=git-upload-pack").status_code == 200
    events = [(event, Path(path)) for event, path in SEEN]
    (version,) = [path for event, path in events if event == "rename" and path.name == "hubgate-generation"]
    refs = version.with_name("packed-refs")
    steps = [("rename", refs), ("sync", refs), ("sync", version.parent), ("rename", version)]
    assert [one for one in events if one in steps] == steps
