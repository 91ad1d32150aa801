"""Patterns of `.gitattributes` and `.gitignore` (gitignore(5)), which match bytes as git does.

Patterns and paths are not trusted. A pattern is an automaton whose states are the bits of a number, so that matching
never costs more than the length of the pattern times that of the path; a regular expression would backtrack for years.
Thousands of patterns and paths would still take hours, so each request has a time limit.
"""

import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from time import thread_time

from msgspec import Struct

from hubgate.server.errors import Unprocessable

MAX_PATTERN_BYTES = 8 * 1024

_SLASH, _ESCAPE = ord("/"), ord("\\")
_ALL_BYTES = frozenset(range(256))
_NAME_BYTES = _ALL_BYTES - {_SLASH}
_SPECIAL_BYTES = b"*?[\\"

_ASCII = range(128)
_CLASSES = {
    b"alnum": frozenset(byte for byte in _ASCII if chr(byte).isalnum()),
    b"alpha": frozenset(byte for byte in _ASCII if chr(byte).isalpha()),
    b"blank": frozenset(b" \t"),
    b"cntrl": frozenset({*range(32), 127}),
    b"digit": frozenset(b"0123456789"),
    b"graph": frozenset(range(33, 127)),
    b"lower": frozenset(byte for byte in _ASCII if chr(byte).islower()),
    b"print": frozenset(range(32, 127)),
    b"punct": frozenset(byte for byte in range(33, 127) if not chr(byte).isalnum()),
    b"space": frozenset(b" \t\n\v\f\r"),
    b"upper": frozenset(byte for byte in _ASCII if chr(byte).isupper()),
    b"xdigit": frozenset(b"0123456789abcdefABCDEF"),
}


class _Deadline(threading.local):
    deadline = float("inf")


_DEADLINE = _Deadline()


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Limit the CPU time for matching in this thread, so that load does not count; `check_time` raises Unprocessable
    after it.
    """
    _DEADLINE.deadline = thread_time() + seconds
    try:
        yield
    finally:
        _DEADLINE.deadline = _Deadline.deadline


def check_time() -> None:
    if thread_time() > _DEADLINE.deadline:
        raise Unprocessable("The rules of .gitattributes or .gitignore take too long for so many files.")


class _Malformed(Exception):
    """The pattern is malformed and matches nothing."""


class Pattern(Struct, frozen=True, dict=True):
    """A pattern. `text` does not include the leading `!` of a negation or the trailing `/` that matches folders only. A
    pattern without a slash matches names in any folder; a pattern with a slash matches whole paths.
    """

    text: bytes

    def matches(self, path: bytes) -> bool:
        return self.accepts(path if self.is_path_pattern else path[path.rfind(b"/") + 1 :])

    @cached_property
    def is_path_pattern(self) -> bool:
        return b"/" in self.text

    @cached_property
    def accepts(self) -> Callable[[bytes], bool]:
        """The function that matches a path if `is_path_pattern`, else a name. Cached, because each file is matched with
        each rule.
        """
        whole, rest = self.text.removeprefix(b"/"), self.text[1:]
        if not _is_special(whole):
            return whole.__eq__
        if self.text[:1] == b"*" and b"/" not in rest and not _is_special(rest):
            return lambda text: text.endswith(rest)
        return self._accepts_by_automaton

    @cached_property
    def _literal(self) -> bytes:
        """A text that every match contains: this check alone excludes most paths."""
        if b"[" in self.text or b"\\" in self.text:
            return b""
        # A slash next to stars may match nothing.
        return max((run.strip(b"/") for run in re.split(rb"[*?]", self.text)), key=len)

    @cached_property
    def _automaton(self) -> "_Automaton | None":
        try:
            if len(self.text) > MAX_PATTERN_BYTES:
                return None
            return _Automaton(self.text.removeprefix(b"/"), is_path_pattern=self.is_path_pattern)
        except _Malformed:
            return None

    def _accepts_by_automaton(self, text: bytes) -> bool:
        if self._literal not in text:
            return False
        check_time()
        return self._automaton is not None and self._automaton.accepts(text)


def _is_special(text: bytes) -> bool:
    return any(byte in _SPECIAL_BYTES for byte in text)


class _Automaton:
    """A nondeterministic automaton, whose states are the bits of a number. Bit n is set if step n may match the next
    byte; the bit after the last step accepts.
    """

    def __init__(self, text: bytes, *, is_path_pattern: bool) -> None:
        # Bit masks by byte: the steps that match it and move on, and the stars that match it and stay.
        self._moving = dict.fromkeys(range(256), 0)
        self._staying = dict.fromkeys(range(256), 0)
        # Stars, which may match nothing; and forks before `**/`, which may be skipped as a whole.
        self._stars, self._forks = 0, 0
        self._count = 0
        at = 0
        while at < len(text):
            at = self._add(text, at, is_path_pattern)

    def _add(self, text: bytes, at: int, is_path_pattern: bool) -> int:
        """Add a step and return the position of the next."""
        byte = text[at]
        if byte == ord("*"):
            end = at
            while end < len(text) and text[end] == ord("*"):
                end += 1
            # `across`: the stars match slashes too. In a path pattern only `**` does, between slashes or at an end.
            alone = (at == 0 or text[at - 1] == _SLASH) and (end == len(text) or text[end] == _SLASH)
            across = not is_path_pattern or (end - at > 1 and alone)
            if across and is_path_pattern and end < len(text):
                self._forks |= 1 << self._count
                self._count += 1
            self._add_star(_ALL_BYTES if across else _NAME_BYTES)
            return end
        if byte == ord("?"):
            self._add_single(_NAME_BYTES if is_path_pattern else _ALL_BYTES)
            return at + 1
        if byte == ord("["):
            inside, end = _bracket(text, at)
            self._add_single(inside - {_SLASH} if is_path_pattern else inside)
            return end
        if byte == _ESCAPE:
            at += 1
            if at == len(text):
                raise _Malformed
        self._add_single(frozenset({text[at]}))
        return at + 1

    def _add_single(self, allowed: frozenset[int]) -> None:
        for byte in allowed:
            self._moving[byte] |= 1 << self._count
        self._count += 1

    def _add_star(self, allowed: frozenset[int]) -> None:
        self._stars |= 1 << self._count
        for byte in allowed:
            self._staying[byte] |= 1 << self._count
        self._count += 1

    def _with_empty_moves(self, states: int) -> int:
        while True:
            forks = states & self._forks
            more = states | (states & self._stars) << 1 | forks << 1 | forks << 3
            if more == states:
                return states
            states = more

    def accepts(self, text: bytes) -> bool:
        states = self._with_empty_moves(1)
        for byte in text:
            states = self._with_empty_moves((states & self._moving[byte]) << 1 | states & self._staying[byte])
            if not states:
                return False
        return bool(states >> self._count & 1)


def _bracket(text: bytes, at: int) -> tuple[frozenset[int], int]:
    """The bytes that a `[...]` matches, and the position after it."""
    found: set[int] = set()
    at += 1
    negated = text[at : at + 1] in (b"!", b"^")
    at += negated
    before, first = None, True
    while first or text[at : at + 1] != b"]":
        first = False
        byte, at = _byte(text, at)
        if byte == ord("[") and text[at : at + 1] == b":":
            end = text.find(b"]", at)
            if end < 0:
                raise _Malformed
            if text[end - 1] == ord(":") and end - 1 > at:
                if text[at + 1 : end - 1] not in _CLASSES:
                    raise _Malformed
                found |= _CLASSES[text[at + 1 : end - 1]]
                before, at = None, end + 1
                continue
        if byte == ord("-") and before is not None and text[at : at + 1] not in (b"", b"]"):
            last, at = _byte(text, at)
            if last == _ESCAPE:
                last, at = _byte(text, at)
            found |= set(range(before, last + 1))
            before = None
            continue
        if byte == _ESCAPE:
            byte, at = _byte(text, at)
        found.add(byte)
        before = byte
    return (_ALL_BYTES - found if negated else frozenset(found)), at + 1


def _byte(text: bytes, at: int) -> tuple[int, int]:
    if at >= len(text):
        raise _Malformed
    return text[at], at + 1


class IgnoreRules(Struct, frozen=True):
    """The rules of a `.gitignore` at the root: a pattern, whether it ignores, and whether it is for folders only."""

    rules: Sequence[tuple[Pattern, bool, bool]]

    @classmethod
    def of(cls, lines: Sequence[bytes]) -> "IgnoreRules":
        return cls([rule for line in lines for rule in _ignore_rule(line)])

    def ignored_among(self, paths: Sequence[str], seconds: float) -> set[str]:
        """The ignored paths. Run in a thread."""
        with time_limit(seconds):
            return {path for path in paths if self.is_ignored(path)}

    def is_ignored(self, path: str) -> bool:
        """Whether a file or a folder that contains it is ignored. A file in an ignored folder cannot be re-included."""
        whole = path.encode()
        ends = [at for at, byte in enumerate(whole) if byte == _SLASH]
        return any(self._ignores(whole[:end], is_folder=True) for end in ends) or self._ignores(whole, is_folder=False)

    def _ignores(self, path: bytes, *, is_folder: bool) -> bool:
        check_time()
        for pattern, ignored, folders_only in reversed(self.rules):
            if (is_folder or not folders_only) and pattern.matches(path):
                return ignored
        return False


def _ignore_rule(line: bytes) -> Iterator[tuple[Pattern, bool, bool]]:
    text = _without_trailing_spaces(line.removesuffix(b"\r"))
    if not text or text.startswith(b"#"):
        return
    ignored = not text.startswith(b"!")
    text = text if ignored else text[1:]
    folders_only = text.endswith(b"/")
    text = text.removesuffix(b"/")
    if text:
        yield Pattern(text), ignored, folders_only


def _without_trailing_spaces(line: bytes) -> bytes:
    stripped = line.rstrip(b" ")
    escapes = len(stripped) - len(stripped.rstrip(b"\\"))
    return stripped + b" " if escapes % 2 and len(stripped) < len(line) else stripped
