"""Which paths a commit made over HTTP may hold. Pushes are checked by git itself (`fsck`), by the same ideas.

What is refused could escape from a checkout on somebody's machine: parent folders, absolute paths, anything a file
system takes for `.git`.
"""

import re
import unicodedata

from hubgate.server.errors import Unprocessable

LONGEST_PATH = 4096
LONGEST_PART = 255
# Folders in one another.
DEEPEST = 100

# Windows knows .git by its short name too, and drops dots and spaces at the end, and what stands after a colon.
_DOT_GIT = re.compile(r"(\.git|git~[0-9]+)[. ]*(:.*)?\Z", re.IGNORECASE)


def check_path(path: str) -> str:
    """The path itself; Unprocessable says what is wrong with it."""
    shown = repr(path[:200])
    if not path or path.startswith("/") or path.endswith("/") or "//" in path:
        raise Unprocessable(f"This is no relative path to a file: {shown}.")
    if "\\" in path:
        raise Unprocessable(f"Use / between folders, not a backslash: {shown}.")
    if any(ord(character) < 32 or ord(character) == 127 for character in path):
        raise Unprocessable(f"A path has no control characters: {shown}.")
    try:
        length = len(path.encode())
    except UnicodeEncodeError:
        raise Unprocessable(f"The path is not valid Unicode: {shown}.") from None
    if length > LONGEST_PATH:
        raise Unprocessable(f"A path has at most {LONGEST_PATH} bytes: {shown}.")
    if path.count("/") > DEEPEST:
        raise Unprocessable(f"A path has at most {DEEPEST} folders in one another: {shown}.")
    for part in path.split("/"):
        if part in (".", ".."):
            raise Unprocessable(f"A path has no . or .. in it: {shown}.")
        if len(part.encode()) > LONGEST_PART:
            raise Unprocessable(f"A name in a path has at most {LONGEST_PART} bytes: {shown}.")
        if _DOT_GIT.match(_as_a_disk_reads(part)):
            raise Unprocessable(f"A path cannot go through .git: {shown}.")
    return path


def refusal_of(path: str) -> Unprocessable | None:
    try:
        check_path(path)
    except Unprocessable as refusal:
        return refusal
    return None


def may_be_pushed(path: str) -> bool:
    """Whether git takes a path that is refused here, and we can walk down to it."""
    parts = path.split("/")
    return "\0" not in path and len(parts) <= DEEPEST + 1 and not {"", ".", ".."}.intersection(parts)


def _as_a_disk_reads(part: str) -> str:
    """macOS ignores some invisible characters and compares composed forms."""
    return "".join(character for character in unicodedata.normalize("NFC", part) if not _ignorable(character))


def _ignorable(character: str) -> bool:
    return unicodedata.category(character) == "Cf"
