"""The interface of a store for large content, and its errors.

Content never changes: a key is derived from the content, so storing it twice results in the same bytes. Content becomes
visible under its key at once and complete, or not at all.
"""

import re
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Literal, Protocol

from msgspec import Struct

from hubgate.server.errors import NotFound, Unavailable

# Segments begin with a letter or digit, so that no key leads out of its folder or to a hidden file.
_KEY = re.compile(r"[a-z0-9][a-z0-9._-]*(/[a-z0-9][a-z0-9._-]*)+\Z")
MAX_KEY_LENGTH = 300


class StoredObject(Struct, frozen=True):
    key: str
    size: int


class Objects(Protocol):
    """A store. All methods may be called concurrently, and raise `StoreUnavailable` if the store does not work."""

    @property
    def name(self) -> str:
        """Where the content is, for operators: a folder, or `s3://bucket/prefix`."""

    async def put(self, key: str, content: Path | bytes, digest: str) -> bool:
        """Store content unless its key exists; return whether this call stored it. `digest` is the SHA-256 of the
        content in hex, which the caller has computed: a remote store rejects content that does not match. A file must
        be synced and on the file system of the data folder; it may be moved, so the caller deletes it if it still
        exists.
        """

    def get(self, key: str, start: int, end: int) -> AsyncGenerator[bytes, None]:
        """The bytes from `start` up to, but not including, `end`; `ObjectMissing` before the first part if the key does
        not exist. Fewer bytes are an error, never a shorter result.
        """

    async def link(
        self, key: str, seconds: int, headers: Mapping[str, str], span: tuple[int, int] | None = None
    ) -> str | None:
        """An address from which anyone can download the content for so many seconds, with these response headers
        (content-type, content-disposition); None if the content has to be sent by the hub. The key is not looked up.
        With `span`, the address is only for the bytes from its first number up to, but not including, the second, which
        the client must request in the Range header.
        """

    async def local_file(self, key: str) -> Path | None:
        """The file with the content, if it is on this machine."""

    async def size(self, key: str) -> int | None:
        """The size of the content; None if the key does not exist."""

    async def delete(self, key: str) -> None:
        """Delete the content, if it exists."""

    def list(self, prefix: str, after: str = "") -> AsyncGenerator[StoredObject, None]:
        """All content whose key begins with a prefix that ends with a slash, ordered by the bytes of the key, beginning
        after the key `after`.
        """

    async def delete_unfinished(self, before: int) -> int:
        """Delete parts of uploads that were started before a time and never finished; return the number of uploads."""

    async def close(self) -> None: ...


class StoreUnavailable(Unavailable):
    """The store is unreachable, slow, overloaded, or answers with errors. The cause says more, in the log."""

    def __init__(self, message: str = "The storage of large files does not respond. Try again.") -> None:
        super().__init__(message, retry_after=5)


class StoreFull(Unavailable):
    def __init__(self) -> None:
        super().__init__("The storage of large files is full.", retry_after=60)


class ObjectMissing(NotFound):
    def __init__(self, key: str) -> None:
        super().__init__("The content of this file is missing.", code="EntryNotFound")
        self.key = key


class StoreFinding(Struct, frozen=True):
    """What a check of a store found, for operators."""

    level: Literal["ok", "warn", "fail"]
    text: str


class StoreProblem(Exception):
    """What went wrong in a store, for the log: the cause of the errors above."""


def check_key(key: str) -> str:
    """Return a valid key. Keys are built from hashes, so an invalid key is an error in the hub."""
    if len(key) > MAX_KEY_LENGTH or _KEY.match(key) is None:
        raise ValueError(f"{key[:MAX_KEY_LENGTH]!r} cannot be a key")
    return key


def hashed_key(kind: str, name: str) -> str:
    """The key of content that is named by a hash: two levels of folders, so that no folder becomes large."""
    return check_key(f"{kind}/{name[:2]}/{name[2:4]}/{name}")
