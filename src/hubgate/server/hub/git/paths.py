"""Which paths a commit over HTTP may contain. Pushes are checked by git (`fsck`) and `weighing`, by the same rules.

A path is refused if it could escape from a checkout (parent folders, absolute paths, anything a file system reads as
`.git`) or break a header, a log or a terminal (control characters).
"""

import re
import unicodedata

from hubgate.server.errors import Unprocessable

LONGEST_PATH = 4096
LONGEST_PART = 255
# Folders in one another.
DEEPEST = 100

# C0, DEL and C1: line breaks, and the start of terminal commands.
CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f]")

# Windows knows .git by its short name too, and drops dots and spaces at the end, and what stands after a colon.
_DOT_GIT = re.compile(r"(\.git|git~[0-9]+)[. ]*(:.*)?\Z", re.IGNORECASE)


def check_path(path: str) -> str:
    """The path itself; Unprocessable says what is wrong with it."""
    shown = repr(path[:200])
    if not path or path.startswith("/") or path.endswith("/") or "//" in path:
        raise Unprocessable(f"This is no relative path to a file: {shown}.")
    if "\\" in path:
        raise Unprocessable(f"Use / between folders, not a backslash: {shown}.")
    if CONTROLS.search(path):
        raise Unprocessable(
            f"A file name cannot contain control characters, such as line breaks: {shown}. Rename the file."
        )
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
