"""Rules for paths and for `.gitmodules` in commits over HTTP. `git fsck` and `tree_limits` check pushes by the same
rules.

A path is rejected if it could escape from a checkout (parent folders, absolute paths, any name that a file system reads
as `.git`) or break a header, a log or a terminal (control characters).
"""

import re
import unicodedata

from hubgate.server.errors import Unprocessable

MAX_PATH_BYTES = 4096
MAX_NAME_BYTES = 255
# Levels of nested folders.
MAX_FOLDER_DEPTH = 100

# C0, DEL and C1: line breaks, and the start of terminal commands.
CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f]")

# Windows also accepts the short name of .git, and drops trailing dots and spaces and anything after a colon.
_DOT_GIT = re.compile(r"(\.git|git~[0-9]+)[. ]*(:.*)?\Z", re.IGNORECASE)


# Compared case-insensitively, as some file systems do.
GITMODULES_FILE = ".gitmodules"
# Larger files are rejected rather than checked in part.
MAX_GITMODULES_BYTES = 1024 * 1024

_SECTION = re.compile(rb'^\s*\[\s*submodule\s*"((?:[^"\\]|\\.)*)"', re.IGNORECASE | re.MULTILINE)
_VALUE = re.compile(rb"(?:^|\])\s*(path|url|update)\s*=[ \t]*([^\r\n]*)", re.IGNORECASE | re.MULTILINE)


def check_path(path: str) -> str:
    """Return the path if it is valid; raise Unprocessable with the reason otherwise."""
    shown = repr(path[:200])
    if not path or path.startswith("/") or path.endswith("/") or "//" in path:
        raise Unprocessable(f"This is not a relative path to a file: {shown}.")
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
    if length > MAX_PATH_BYTES:
        raise Unprocessable(f"A path may have at most {MAX_PATH_BYTES} bytes: {shown}.")
    if path.count("/") > MAX_FOLDER_DEPTH:
        raise Unprocessable(f"A path may have at most {MAX_FOLDER_DEPTH} nested folders: {shown}.")
    for part in path.split("/"):
        if part in (".", ".."):
            raise Unprocessable(f"A path cannot contain . or ..: {shown}.")
        if len(part.encode()) > MAX_NAME_BYTES:
            raise Unprocessable(f"A name in a path may have at most {MAX_NAME_BYTES} bytes: {shown}.")
        if _DOT_GIT.match(_normalized_name(part)):
            raise Unprocessable(f"A path cannot go through .git: {shown}.")
    return path


def path_error(path: str) -> Unprocessable | None:
    try:
        check_path(path)
    except Unprocessable as refusal:
        return refusal
    return None


def may_be_pushed(path: str) -> bool:
    """Whether a path that is rejected here can still exist in a pushed tree that we can walk."""
    parts = path.split("/")
    return "\0" not in path and len(parts) <= MAX_FOLDER_DEPTH + 1 and not {"", ".", ".."}.intersection(parts)


def _normalized_name(part: str) -> str:
    """Normalize a name: macOS ignores some invisible characters and compares composed forms."""
    return "".join(character for character in unicodedata.normalize("NFC", part) if not _ignorable(character))


def _ignorable(character: str) -> bool:
    return unicodedata.category(character) == "Cf"


def check_gitmodules(text: bytes) -> None:
    """Raise Unprocessable if a `.gitmodules` may be dangerous, by the rules that `git fsck` applies to pushes. When in
    doubt, the file is rejected: old versions of git run commands from it on a clone with submodules (CVE-2018-11235,
    CVE-2018-17456).
    """
    if len(text) > MAX_GITMODULES_BYTES:
        raise _rejected_gitmodules(f"it has more than {MAX_GITMODULES_BYTES:,} bytes")
    for name in _SECTION.findall(text):
        parts = re.split(rb"[/\\]+", name)
        if not name or b".." in parts:
            raise _rejected_gitmodules("the name of a submodule leads out of its folder")
    for key, value in _VALUE.findall(text):
        stripped = value.strip().lstrip(b"\"' ")
        if key.lower() == b"update" and stripped.startswith(b"!"):
            raise _rejected_gitmodules("update would run a command")
        if stripped.startswith(b"-"):
            raise _rejected_gitmodules(f"{key.decode().lower()} would be read as an option")
    if b"\\\n" in text or b"\\\r\n" in text:
        raise _rejected_gitmodules("a value continues on the next line")


def _rejected_gitmodules(reason: str) -> Unprocessable:
    return Unprocessable(f"{GITMODULES_FILE} is rejected: {reason}.")
