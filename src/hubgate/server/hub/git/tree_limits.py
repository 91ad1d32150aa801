"""The size of a tree: how deeply it is nested and how many files it expands to.

A few kilobytes of trees, in which each tree contains the next one ten times, expand to billions of files, and ten
thousand nested folders to a path that no program can walk. Code that reads a landed tree is safe from both.
"""

import re
from dataclasses import dataclass, field

import pygit2
from msgspec import Struct

from hubgate.server.hub.git.paths import CONTROLS, MAX_FOLDER_DEPTH, MAX_NAME_BYTES

MAX_FILES = 1_000_000
# Trees with invalid names that are reported; a single invalid name rejects the push.
MAX_BAD_NAMES = 1_000

_ENTRY = re.compile(rb"([0-7]{1,6}) ([^\0]+)\0(.{20})", re.DOTALL)
_FOLDER = (b"40000", b"040000")


class TreeSize(Struct, frozen=True):
    height: int
    files: int

    @property
    def exceeds_limits(self) -> bool:
        return self.height > MAX_FOLDER_DEPTH or self.files > MAX_FILES


_TOO_DEEP = TreeSize(MAX_FOLDER_DEPTH + 1, 0)


@dataclass(slots=True)
class _OpenTree:
    """A tree on the stack whose folders are still being measured. `next_folder` is an index into `folders`."""

    sha: bytes
    files: int
    folders: list[bytes]
    next_folder: int = 0


@dataclass
class TreeMeasurer:
    """Measures trees, reading each tree once. `bad_names` has the problem with a name, by the id of its tree."""

    bad_names: dict[bytes, str] = field(default_factory=dict)
    _known: dict[bytes, TreeSize] = field(default_factory=dict)

    def measure(self, odb: pygit2.Odb, sha: bytes) -> TreeSize:
        stack = [] if sha in self._known else [self._open(odb, sha)]
        while stack:
            tree = stack[-1]
            if tree.next_folder == len(tree.folders):
                self._known[tree.sha] = self._sum(tree)
                stack.pop()
                continue
            child = tree.folders[tree.next_folder]
            tree.next_folder += 1
            if child not in self._known:
                if len(stack) > MAX_FOLDER_DEPTH:
                    self._known[child] = _TOO_DEEP
                else:
                    stack.append(self._open(odb, child))
        return self._known[sha]

    def _sum(self, tree: _OpenTree) -> TreeSize:
        folders = [self._known[child] for child in tree.folders]
        files = tree.files + sum(folder.files for folder in folders)
        return TreeSize(1 + max((folder.height for folder in folders), default=0), min(files, MAX_FILES + 1))

    def _open(self, odb: pygit2.Odb, sha: bytes) -> _OpenTree:
        try:
            entries = _ENTRY.findall(odb.read(sha.hex())[1])
        except KeyError:
            # `inspection.is_connected` checks for missing objects.
            return _OpenTree(sha, 0, [])
        problem = _name_problem([name for _, name, _ in entries])
        if problem is not None and len(self.bad_names) < MAX_BAD_NAMES:
            self.bad_names[sha] = problem
        folders = [child for mode, _, child in entries if mode in _FOLDER]
        return _OpenTree(sha, len(entries) - len(folders), folders)


def _name_problem(names: list[bytes]) -> str | None:
    """The first problem with the names of a tree. Names appear in JSON, headers and pages: each must be UTF-8 without
    control characters, and short enough for a file system.
    """
    try:
        joined = b"/".join(names).decode()
    except UnicodeDecodeError:
        return "contains a file name that is not UTF-8. Rename the file."
    if CONTROLS.search(joined):
        name = next(part for part in joined.split("/") if CONTROLS.search(part))
        return f"contains a file name with control characters, such as line breaks: {name[:200]!r}. Rename the file."
    if names and max(map(len, names)) > MAX_NAME_BYTES:
        return f"contains a file name of more than {MAX_NAME_BYTES} bytes. Rename the file."
    return None
