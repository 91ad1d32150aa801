"""How much hangs on a tree: how deep it goes, and how many files it stands for.

A few kilobytes of trees that name one another ten times each stand for billions of files, and ten thousand folders in
one another for a path that nothing can walk. Whoever reads a tree later need not fear either.
"""

import re
from dataclasses import dataclass, field

import pygit2

from hubgate.server.hub.git.paths import DEEPEST, LONGEST_PART

MOST_FILES = 1_000_000

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
    """Each tree is read once, however often it is named. `bad_names` are trees with a name that only git can say."""

    bad_names: set[bytes] = field(default_factory=set)
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
        if not _can_be_said([name for _, name, _ in entries]):
            self.bad_names.add(sha)
        folders = [inside for mode, _, inside in entries if mode in _FOLDER]
        return _Open(sha, len(entries) - len(folders), folders)


def _can_be_said(names: list[bytes]) -> bool:
    """The hub speaks JSON about files: every name is UTF-8, and none is longer than disks take."""
    try:
        b"/".join(names).decode()
    except UnicodeDecodeError:
        return False
    return not names or max(map(len, names)) <= LONGEST_PART
