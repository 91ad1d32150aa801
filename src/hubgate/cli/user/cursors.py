"""Stored cursors of `hubgate webhooks listen`: one small file for each webhook, in the user's configuration folder.

A file is locked while a command listens, so that two commands do not overwrite each other's cursor. After a kill, only
the event that was being forwarded may be forwarded again.
"""

import contextlib
import hashlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from hubgate.client import HubgateError, StoreUnusable
from hubgate.client.store import default_folder, try_lock

_ID = re.compile(r"[0-9A-Za-z]{1,64}\Z")
_MAX_BYTES = 1000
# Marks the cursor of a webhook that its command deletes on exit.
_TEMPORARY = "temporary"


class StoredCursor:
    """The cursor of a webhook, in an open and locked file: the number, padded to a fixed length, followed by a mark and
    the organization if the webhook is temporary.
    """

    def __init__(self, path: Path, file: IO[bytes]) -> None:
        self._path, self._file = path, file
        number, mark, organization, *_ = [*file.read(_MAX_BYTES).decode("utf-8", "replace").split(" "), "", "", ""]
        self.value = int(number) if number.isascii() and number.isdigit() else None
        self.is_temporary = mark == _TEMPORARY
        self.organization = organization or None

    def mark_temporary(self, organization: str | None) -> None:
        self.is_temporary, self.organization = True, organization

    def save(self, value: int) -> None:
        self.value = value
        mark = f" {_TEMPORARY} {self.organization or ''}" if self.is_temporary else ""
        self._file.seek(0)
        self._file.write(f"{value:020}{mark}".encode())
        self._file.flush()

    def delete(self) -> None:
        self._file.truncate(0)
        # Windows does not remove a file that is open.
        with contextlib.suppress(OSError):
            self._path.unlink()


@contextlib.contextmanager
def open_cursor(endpoint: str, webhook_id: str) -> Iterator[StoredCursor]:
    if not _ID.match(webhook_id):
        # The id is part of a path, and a hub could send any text.
        raise HubgateError("this is not the ID of a webhook. Try: hubgate webhooks list")
    path = _folder() / f"{_prefix(endpoint)}{webhook_id}"
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b")
    except OSError as error:
        raise StoreUnusable(f"Cannot write {path}: {error.strerror or error}") from error
    with file:
        if not try_lock(file):
            raise HubgateError("another `hubgate webhooks listen` is running for this webhook. Stop it first.")
        yield StoredCursor(path, file)


def abandoned_webhooks(endpoint: str) -> Iterator[tuple[str, StoredCursor]]:
    """Temporary webhooks of commands that were killed, with their cursors."""
    prefix = _prefix(endpoint)
    for path in sorted(_folder().glob(f"{prefix}*")):
        webhook_id = path.name.removeprefix(prefix)
        with contextlib.suppress(HubgateError), open_cursor(endpoint, webhook_id) as cursor:
            if cursor.is_temporary:
                yield webhook_id, cursor


def _folder() -> Path:
    return default_folder() / "cursors"


def _prefix(endpoint: str) -> str:
    return hashlib.sha256(endpoint.encode()).hexdigest()[:16] + "-"
