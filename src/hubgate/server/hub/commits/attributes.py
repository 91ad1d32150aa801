"""What `.gitattributes` and `.gitignore` say about a path: whether it is kept as a large file, whether it is ignored.

Only what decides that is read: `filter=lfs` and what takes it back. As in git, a file nearer to the path speaks last.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from hubgate.server.hub.commits.patterns import Ignored, Pattern, check_time, in_time

NAME = ".gitattributes"
# Of what is judged: rules may be made to be slow. What lies beyond is kept, and means nothing here.
LONGEST = 256 * 1024
MOST_RULES = 2_000

_NAME = NAME.encode()
_AS_LARGE = b"filter=lfs diff=lfs merge=lfs -text"

# A pattern in quotes is written as C writes texts.
_QUOTED = re.compile(rb'"((?:[^"\\]|\\.)*)"[ \t]', re.DOTALL)
_ESCAPED = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)
_LETTERS = {b"a": b"\a", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}


@dataclass(frozen=True)
class _Rule:
    pattern: Pattern
    large: bool


@dataclass(frozen=True)
class Attributes:
    """`files`: the folder each stands in ("" is the root) and its text, outermost first."""

    files: Sequence[tuple[str, str]]

    def large_among(self, paths: Iterable[str], seconds: float) -> set[str]:
        """For a thread: there may be many rules, and many files."""
        with in_time(seconds):
            return {path for path in paths if self.is_large(path)}

    def is_large(self, path: str) -> bool:
        check_time()
        for folder, text in reversed(self.files):
            if folder and not path.startswith(f"{folder}/"):
                continue
            inside = (path[len(folder) + 1 :] if folder else path).encode()
            name = inside[inside.rfind(b"/") + 1 :]
            if name == _NAME:
                # git reads it before there could be anything but a pointer.
                return False
            for rule in reversed(_rules(text)):
                if rule.pattern.accepts(inside if rule.pattern.of_paths else name):
                    return rule.large
        return False


@lru_cache(maxsize=64)
def _rules(text: str) -> tuple[_Rule, ...]:
    return tuple(_parsed(_lines(text)))


def _lines(text: str) -> list[bytes]:
    data = text[: LONGEST + 1].encode(errors="surrogateescape")
    if len(data) > LONGEST:
        # Half a line may say the opposite of the whole.
        data = data[: max(data.rfind(b"\n", 0, LONGEST + 1), 0)]
    return data.split(b"\n", MOST_RULES)[:MOST_RULES]


def _parsed(lines: Iterable[bytes]) -> Iterable[_Rule]:
    for line in lines:
        text, words = _pattern_and_words(line.strip(b" \t\r"))
        # A pattern with a slash at its end, or one that takes back, means nothing in this file.
        if not text or text[:1] in (b"#", b"!") or text.endswith(b"/"):
            continue
        for word in words:
            if word == b"filter=lfs":
                yield _Rule(Pattern(text), large=True)
            elif word in (b"filter", b"-filter", b"!filter") or word.startswith(b"filter="):
                yield _Rule(Pattern(text), large=False)


def _pattern_and_words(line: bytes) -> tuple[bytes, list[bytes]]:
    quoted = _QUOTED.match(line)
    if quoted:
        return _ESCAPED.sub(_unescaped, quoted[1]), line[quoted.end() :].split()
    text, *words = line.split() or [b""]
    return text, words


def _unescaped(match: re.Match[bytes]) -> bytes:
    what = match[1]
    return bytes([int(what, 8) & 255]) if len(what) == 3 else _LETTERS.get(what, what)


@lru_cache(maxsize=64)
def ignored_by(text: str) -> Ignored:
    return Ignored.of(_lines(text))


def folders_of(path: str) -> list[str]:
    """The folders that `path` lies in, outermost first."""
    parts = path.split("/")[:-1]
    return ["/".join(parts[:length]) for length in range(len(parts) + 1)]


def announcing(text: bytes, paths: Iterable[str]) -> bytes:
    """All of a file's text, with a line at its end for each path that has none there. One that stands before a line
    which takes something back may no longer count: it is written again.
    """
    missing = {line_for(path).encode(): None for path in paths}
    for line in _about_filters(text):
        if line in missing:
            del missing[line]
        elif not line.endswith(_AS_LARGE) and not all(rule.large for rule in _parsed([line])):
            break
        if not missing:
            break
    lines = b"".join(line + b"\n" for line in missing)
    between = b"\n" if lines and text and not text.endswith(b"\n") else b""
    return text + between + lines


def _about_filters(text: bytes) -> Iterator[bytes]:
    """From the last line to the first; megabytes of other lines take no time."""
    end = len(text)
    while (at := text.rfind(b"filter", 0, end)) >= 0:
        end, after = text.rfind(b"\n", 0, at) + 1, text.find(b"\n", at)
        yield text[end : after if after >= 0 else None].strip(b" \t\r\n")


def line_for(path: str) -> str:
    """A line that sends exactly this path to the large files."""
    pattern = "".join(_LITERALLY.get(letter, letter) for letter in path)
    return f"/{pattern} {_AS_LARGE.decode()}"


_LITERALLY = {letter: f"\\{letter}" for letter in "*?[]\\!#"} | dict.fromkeys(" \t", "[[:space:]]")
