"""What `.gitattributes` and `.gitignore` say about a path: whether it is kept as a large file, whether it is ignored.

Only what decides that is read: `filter=lfs` and what takes it back. As in git, a file nearer to the path speaks last.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from pathspec import GitIgnoreSpec

NAME = ".gitattributes"
LONGEST = 256 * 1024
MOST_RULES = 2_000


@dataclass(frozen=True)
class _Rule:
    spec: GitIgnoreSpec
    large: bool


@dataclass(frozen=True)
class Attributes:
    """`files`: the folder each stands in ("" is the root) and its text, outermost first."""

    files: Sequence[tuple[str, str]]

    def is_large(self, path: str) -> bool:
        large = False
        for folder, text in self.files:
            if folder and not path.startswith(f"{folder}/"):
                continue
            inside = path[len(folder) + 1 :] if folder else path
            for rule in _rules(text):
                if rule.spec.match_file(inside):
                    large = rule.large
        return large


@lru_cache(maxsize=64)
def _rules(text: str) -> tuple[_Rule, ...]:
    return tuple(_parsed(text[:LONGEST].splitlines()[:MOST_RULES]))


def _parsed(lines: Iterable[str]) -> Iterable[_Rule]:
    for line in lines:
        words = line.split()
        # A pattern with a slash at its end, or one that takes back, means nothing in this file.
        if len(words) < 2 or words[0][0] in "#!" or words[0].endswith("/"):
            continue
        for word in words[1:]:
            if word == "filter=lfs":
                yield _Rule(GitIgnoreSpec.from_lines([words[0]]), large=True)
            elif word in ("-filter", "!filter") or word.startswith("filter="):
                yield _Rule(GitIgnoreSpec.from_lines([words[0]]), large=False)


@lru_cache(maxsize=64)
def ignored_by(text: str) -> GitIgnoreSpec:
    return GitIgnoreSpec.from_lines(text[:LONGEST].splitlines()[:MOST_RULES])


def folders_of(path: str) -> list[str]:
    """The folders that `path` lies in, outermost first."""
    parts = path.split("/")[:-1]
    return ["/".join(parts[:length]) for length in range(len(parts) + 1)]


def line_for(path: str) -> str:
    """A line that sends exactly this path to the large files."""
    pattern = "".join(f"\\{letter}" if letter in "*?[]\\!#" else letter for letter in path)
    return f"/{pattern.replace(' ', '[[:space:]]')} filter=lfs diff=lfs merge=lfs -text"
