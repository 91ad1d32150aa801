"""Evaluates `.gitattributes` and `.gitignore`: whether a path is stored as a large file, and whether it is ignored.

Only `filter` attributes are evaluated. As in git, the `.gitattributes` nearest to the path takes precedence.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from msgspec import Struct

from hubgate.server.hub.commits.patterns import IgnoreRules, Pattern, check_time, time_limit

ATTRIBUTES_FILE = ".gitattributes"
# Bytes that are evaluated: rules may be written to be slow. The rest of the file is stored but ignored here.
MAX_EVALUATED_BYTES = 256 * 1024
MAX_RULES = 2_000
# Of all files together, to be evaluated without a thread; a step is a rule and a letter of a path.
MAX_QUICK_BYTES = 4 * 1024
MAX_QUICK_STEPS = 4_000

_ATTRIBUTES_NAME = ATTRIBUTES_FILE.encode()
_LARGE_ATTRIBUTES = b"filter=lfs diff=lfs merge=lfs -text"

# A quoted pattern is a C string.
_QUOTED = re.compile(rb'"((?:[^"\\]|\\.)*)"[ \t]', re.DOTALL)
_ESCAPED = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)
_C_ESCAPES = {b"a": b"\a", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}


class _Rule(Struct, frozen=True):
    pattern: Pattern
    large: bool


class Attributes(Struct, frozen=True):
    """The `.gitattributes` of a commit. `files` has the folder ("" is the root) and text of each, outermost first."""

    files: Sequence[tuple[str, str]]

    def are_quick_for(self, paths: Sequence[str]) -> bool:
        """Whether `large_among` is certain to take less than a millisecond, and needs no thread."""
        if any("[" in text for _, text in self.files):
            # A set of characters takes as long to read as hundreds of other characters of a pattern.
            return False
        size = sum(len(text) for _, text in self.files)
        rules = sum(text.count("\n") + 1 for _, text in self.files)
        return size <= MAX_QUICK_BYTES and rules * sum(map(len, paths)) <= MAX_QUICK_STEPS

    def large_among(self, paths: Iterable[str], seconds: float) -> set[str]:
        """The paths that the rules declare as large files. Run in a thread unless `are_quick_for` these paths."""
        with time_limit(seconds):
            return {path for path in paths if self.is_large(path)}

    def is_large(self, path: str) -> bool:
        check_time()
        for folder, text in reversed(self.files):
            if folder and not path.startswith(f"{folder}/"):
                continue
            path_here = (path[len(folder) + 1 :] if folder else path).encode()
            name = path_here[path_here.rfind(b"/") + 1 :]
            if name == _ATTRIBUTES_NAME:
                # Git reads .gitattributes before the LFS filter could replace a pointer.
                return False
            for rule in reversed(_rules(text)):
                if rule.pattern.accepts(path_here if rule.pattern.is_path_pattern else name):
                    return rule.large
        return False


@lru_cache(maxsize=64)
def _rules(text: str) -> tuple[_Rule, ...]:
    return tuple(_parse(_lines(text)))


def _lines(text: str) -> list[bytes]:
    data = text[: MAX_EVALUATED_BYTES + 1].encode(errors="surrogateescape")
    if len(data) > MAX_EVALUATED_BYTES:
        # A truncated line may mean the opposite of the whole line.
        data = data[: max(data.rfind(b"\n", 0, MAX_EVALUATED_BYTES + 1), 0)]
    return data.split(b"\n", MAX_RULES)[:MAX_RULES]


def _parse(lines: Iterable[bytes]) -> Iterable[_Rule]:
    for line in lines:
        text, words = _pattern_and_words(line.strip(b" \t\r"))
        # Patterns with a trailing slash and negated patterns have no effect in this file.
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
    escape = match[1]
    return bytes([int(escape, 8) & 255]) if len(escape) == 3 else _C_ESCAPES.get(escape, escape)


@lru_cache(maxsize=64)
def ignore_rules(text: str) -> IgnoreRules:
    return IgnoreRules.of(_lines(text))


def folders_of(path: str) -> list[str]:
    """The folders that contain `path`, outermost first."""
    parts = path.split("/")[:-1]
    return ["/".join(parts[:length]) for length in range(len(parts) + 1)]


def with_lines_for(text: bytes, paths: Iterable[str]) -> bytes:
    """The text of a .gitattributes with a line appended for each path that has none. A line that is followed by one
    that unsets a filter may be overridden, so it is appended again.
    """
    missing = {line_for(path).encode(): None for path in paths}
    for line in _filter_lines_backwards(text):
        if line in missing:
            del missing[line]
        elif not line.endswith(_LARGE_ATTRIBUTES) and not all(rule.large for rule in _parse([line])):
            break
        if not missing:
            break
    lines = b"".join(line + b"\n" for line in missing)
    separator = b"\n" if lines and text and not text.endswith(b"\n") else b""
    return text + separator + lines


def _filter_lines_backwards(text: bytes) -> Iterator[bytes]:
    """Yield the lines with filters from last to first, without splitting megabytes of other lines."""
    end = len(text)
    while (at := text.rfind(b"filter", 0, end)) >= 0:
        end, after = text.rfind(b"\n", 0, at) + 1, text.find(b"\n", at)
        yield text[end : after if after >= 0 else None].strip(b" \t\r\n")


def line_for(path: str) -> str:
    """The line that declares exactly this path as a large file."""
    pattern = "".join(_ESCAPES.get(letter, letter) for letter in path)
    return f"/{pattern} {_LARGE_ATTRIBUTES.decode()}"


_ESCAPES = {letter: f"\\{letter}" for letter in "*?[]\\!#"} | dict.fromkeys(" \t", "[[:space:]]")
