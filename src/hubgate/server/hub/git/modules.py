"""Checks `.gitmodules` in commits over HTTP, by the rules that `git fsck` applies to pushes.

Old versions of git run commands from this file on a clone with submodules (CVE-2018-11235, CVE-2018-17456).
"""

import re

from hubgate.server.errors import Unprocessable

# Compared case-insensitively, as some file systems do.
MODULES = ".gitmodules"
# Larger files are rejected rather than checked in part.
LONGEST = 1024 * 1024

_SECTION = re.compile(rb'^\s*\[\s*submodule\s*"((?:[^"\\]|\\.)*)"', re.IGNORECASE | re.MULTILINE)
_VALUE = re.compile(rb"(?:^|\])\s*(path|url|update)\s*=[ \t]*([^\r\n]*)", re.IGNORECASE | re.MULTILINE)


def check_modules(text: bytes) -> None:
    """Raise Unprocessable if the file may be dangerous. In doubt the file is rejected."""
    if len(text) > LONGEST:
        raise _refused(f"it has more than {LONGEST:,} bytes")
    for name in _SECTION.findall(text):
        parts = re.split(rb"[/\\]+", name)
        if not name or b".." in parts:
            raise _refused("the name of a submodule leads out of its folder")
    for key, value in _VALUE.findall(text):
        stripped = value.strip().lstrip(b"\"' ")
        if key.lower() == b"update" and stripped.startswith(b"!"):
            raise _refused("update would run a command")
        if stripped.startswith(b"-"):
            raise _refused(f"{key.decode().lower()} would be taken for an option")
    if b"\\\n" in text or b"\\\r\n" in text:
        raise _refused("a value goes on in the next line")


def _refused(reason: str) -> Unprocessable:
    return Unprocessable(f"{MODULES} is refused: {reason}.")
