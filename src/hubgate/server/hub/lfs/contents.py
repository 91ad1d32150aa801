"""The stored content of a large file of a repo: one object, or chunks of xorbs."""

from collections.abc import AsyncGenerator

from msgspec import Struct

from hubgate.server.hub.cas import files_store
from hubgate.server.hub.cas.files_store import ChunkedFile
from hubgate.server.hub.cas.reading import content
from hubgate.server.hub.cas.tables import XorbsOfFile
from hubgate.server.hub.context import Repos


class StoredContent(Struct, frozen=True):
    """The content of a large file. `chunked` is None if it is one object."""

    oid: str
    size: int
    chunked: ChunkedFile | None = None

    def read(self, repos: Repos, start: int, end: int) -> AsyncGenerator[bytes, None]:
        """The bytes from `start` up to, but not including, `end`."""
        if self.chunked is not None:
            xorbs = XorbsOfFile(repos.db, self.chunked.repo_id, self.oid)
            return content(repos, xorbs, self.chunked.terms, start, end)
        return repos.large_files.read(self.oid, start, end)


async def find(repos: Repos, repo_id: str, oid: str) -> StoredContent | None:
    """The content of a file that was uploaded to the repo; None without such a file. Knowing a hash grants nothing."""
    found = await files_store.find_link(repos.db, repo_id, oid)
    if found is None:
        return None
    size, chunked = found
    # The xorbs of a file cannot be deleted while the file is in the repo.
    if chunked is None and not await repos.large_files.has(oid, size):
        return None
    return StoredContent(oid, size, chunked)
