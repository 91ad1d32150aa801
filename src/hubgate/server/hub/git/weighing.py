"""How much hangs on a tree: how deep it goes, and how many files it stands for.

A few kilobytes of trees that name one another ten times each stand for billions of files, and ten thousand folders in
one another for a path that nothing can walk. Whoever reads a tree later need not fear either.
"""

import re
from dataclasses import dataclass, field

import pygit2

from hubgate.server.hub.git.paths import CONTROLS, DEEPEST, LONGEST_PART

MOST_FILES = 1_000_000
# Trees whose names are reported: one is enough to refuse a push.
MOST_BAD_NAMES = 1_000

_ENTRY = re.compile(rb"([0-7]{1,6}) ([^\0]+)\0(.{20})", re.DOTALL)
_FOLDER = (b"40000", b"040000")


@dataclass(frozen=True, slots=True)
class Weight:
    height: int
    files: int

    @property
    def is_too_much(self) -> bool:
        return self.height > DEEPEST or self.files > MOST_FILES


_TOO_DEEP = Weight(DEEPEST + 1, 0)


@dataclass(slots=True)
class _Open:
    """A tree whose folders are still being weighed."""

    sha: bytes
    files: int
    folders: list[bytes]
    at: int = 0


@dataclass
class Scales:
    """Each tree is read once, however often it is named. `bad_names`: what is wrong with a name, by its tree."""

    bad_names: dict[bytes, str] = field(default_factory=dict)
    _known: dict[bytes, Weight] = field(default_factory=dict)

    def weigh(self, odb: pygit2.Odb, sha: bytes) -> Weight:
        opened = [] if sha in self._known else [self._open(odb, sha)]
        while opened:
            tree = opened[-1]
            if tree.at == len(tree.folders):
                self._known[tree.sha] = self._sum(tree)
                opened.pop()
                continue
            inside = tree.folders[tree.at]
            tree.at += 1
            if inside not in self._known:
                if len(opened) > DEEPEST:
                    self._known[inside] = _TOO_DEEP
                else:
                    opened.append(self._open(odb, inside))
        return self._known[sha]

    def _sum(self, tree: _Open) -> Weight:
        folders = [self._known[inside] for inside in tree.folders]
        files = tree.files + sum(folder.files for folder in folders)
        return Weight(1 + max((folder.height for folder in folders), default=0), min(files, MOST_FILES + 1))

    def _open(self, odb: pygit2.Odb, sha: bytes) -> _Open:
        try:
            entries = _ENTRY.findall(odb.read(sha.hex())[1])
        except KeyError:
            # Whether everything is there is asked elsewhere.
            return _Open(sha, 0, [])
        fault = _name_fault([name for _, name, _ in entries])
        if fault is not None and len(self.bad_names) < MOST_BAD_NAMES:
            self.bad_names[sha] = fault
        folders = [inside for mode, _, inside in entries if mode in _FOLDER]
        return _Open(sha, len(entries) - len(folders), folders)


def _name_fault(names: list[bytes]) -> str | None:
    """Names appear in JSON, in headers and on pages: each is UTF-8 without control characters, and fits on a disk."""
    try:
        joined = b"/".join(names).decode()
    except UnicodeDecodeError:
        return "contains a file name that is not UTF-8. Rename the file."
    if CONTROLS.search(joined):
        name = next(part for part in joined.split("/") if CONTROLS.search(part))
        return f"contains a file name with control characters, such as line breaks: {name[:200]!r}. Rename the file."
    if names and max(map(len, names)) > LONGEST_PART:
        return f"contains a file name of more than {LONGEST_PART} bytes. Rename the file."
    return None
