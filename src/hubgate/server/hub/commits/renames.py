"""The rename of a file without a change of its content, which the hub reads itself."""

import contextlib
from collections.abc import AsyncIterator

from hubgate.server.errors import PayloadTooLarge
from hubgate.server.hub.commits.model import AddFile, AddLargeFile, Content
from hubgate.server.hub.context import Repos
from hubgate.server.hub.git import objects, program
from hubgate.server.hub.git.objects import MAX_BLOB_IN_MEMORY, TreeEntry
from hubgate.server.hub.git.threads import in_thread
from hubgate.server.hub.lfs.files import full_disk_named
from hubgate.server.hub.repos.model import Repo

_READ_SECONDS = 60.0


@contextlib.asynccontextmanager
async def renamed_file(repos: Repos, repo: Repo, entry: TreeEntry, path: str) -> AsyncIterator[AddFile | AddLargeFile]:
    """The operation that renames a file to `path`. Use it within the context: it may need a temporary file."""
    if entry.pointer is not None:
        yield AddLargeFile(path, entry.pointer.oid, entry.pointer.size, entry.path)
        return
    folder = repos.folders.of(repo.id)
    if entry.size <= MAX_BLOB_IN_MEMORY:
        yield AddFile(path, Content(entry.size, await objects.small_blob(folder, entry.sha)), entry.path)
        return
    temporary = repos.large_files.temporary()
    try:
        with full_disk_named(), temporary.open("wb") as file:
            command, limit = ["cat-file", "blob", entry.sha], repos.regular_upload_max
            if not await program.copy_output(command, folder, file, limit, _READ_SECONDS):
                raise PayloadTooLarge(f"{entry.path} is too large to be renamed here. Rename it with git.")
        yield AddFile(path, Content(entry.size, file=temporary), entry.path)
    finally:
        await in_thread(temporary.unlink, missing_ok=True)
