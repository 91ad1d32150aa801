"""Rules for ref names: those of git (git-check-ref-format), and ours, so that every interface can address a ref."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator

MAX_REF_BYTES = 400
MAX_PART_BYTES = 200

# No control characters, no space, none of ~^:?*[\ and no @{.
_REFUSED = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_PULL_REQUESTS = "refs/pr"
_LOOKS_LIKE_A_COMMIT = re.compile(r"[0-9a-fA-F]{40}\Z")


def invalid_reason(name: str) -> str | None:
    """The reason why a full name such as refs/heads/main is invalid; None if it is valid.

    Bytes that are not UTF-8 are passed as surrogates.
    """
    parts = name.split("/")
    if (
        len(parts) < 2
        or _REFUSED.search(name)
        or name.endswith(".")
        or any(not part or part.startswith((".", "-")) or part.endswith(".lock") for part in parts)
    ):
        return "this is not a valid ref name"
    if _SURROGATE.search(name):
        return "the name is not UTF-8"
    if len(name.encode()) > MAX_REF_BYTES or any(len(part.encode()) > MAX_PART_BYTES for part in parts):
        return "the name is too long"
    short = name.split("/", 2)[-1]
    if short in ("HEAD", "@") or _LOOKS_LIKE_A_COMMIT.match(short):
        # The name would shadow HEAD or a commit wherever a revision is parsed.
        return "this name is reserved"
    return None


class RefNames:
    """The names of existing refs. Git stores refs as files: no ref can be the folder of another."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names: set[str] = set()
        self._folders: Counter[str] = Counter()
        for name in names:
            self.add(name)

    @property
    def branch_and_tag_count(self) -> int:
        """The number of refs other than those of pull requests, which have a limit per user (attack O72)."""
        return len(self._names) - self._folders[_PULL_REQUESTS]

    def add(self, name: str) -> None:
        if name not in self._names:
            self._names.add(name)
            self._folders.update(_folders_of(name))

    def discard(self, name: str) -> None:
        if name in self._names:
            self._names.discard(name)
            self._folders.subtract(_folders_of(name))

    def conflicting_ref(self, name: str) -> str | None:
        """An existing ref that conflicts with `name`."""
        if self._folders[name] > 0:
            return next(other for other in self._names if other.startswith(f"{name}/"))
        return next((folder for folder in _folders_of(name) if folder in self._names), None)


def _folders_of(name: str) -> Iterator[str]:
    parts = name.split("/")
    return ("/".join(parts[:length]) for length in range(1, len(parts)))
