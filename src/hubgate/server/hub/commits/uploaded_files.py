"""Files of a commit that are received one after another, each written to a temporary file on disk. Those that existing
clients would upload as large files are stored as such.
"""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

from hubgate.server.errors import PayloadTooLarge, Unprocessable
from hubgate.server.hub.commits.model import AddFile, Content
from hubgate.server.hub.commits.preupload import looks_binary
from hubgate.server.hub.git.paths import check_path
from hubgate.server.hub.git.threads import in_thread
from hubgate.server.hub.lfs.files import full_disk_named

# Each is a temporary file until the commit is written.
MAX_FILES = 1_000
# As many as existing clients send to learn how to upload a file.
SAMPLE_BYTES = 512


class UploadedFiles:
    """Receives files. `new_temporary` returns the path of a new temporary file; call `clean_up` in all cases."""

    def __init__(self, new_temporary: Callable[[], Path], max_file_bytes: int) -> None:
        self._create_temporary = new_temporary
        self._max_file_bytes = max_file_bytes
        self.operations: list[AddFile] = []

    async def receive(self, path: str, parts: AsyncIterator[bytes]) -> None:
        check_path(path)
        if any(path == operation.path for operation in self.operations):
            raise Unprocessable(f"{path} was sent twice.")
        if len(self.operations) >= MAX_FILES:
            raise PayloadTooLarge(f"Upload at most {MAX_FILES:,} files at once.")
        temporary = self._create_temporary()
        # Before its content is received, so that `clean_up` knows the file.
        self.operations.append(AddFile(path, Content(0, file=temporary)))
        size, start = 0, b""
        with full_disk_named(), temporary.open("wb") as file:
            async for part in parts:
                size += len(part)
                if size > self._max_file_bytes:
                    raise PayloadTooLarge(
                        f"{path} is too large: a file inside a commit may have at most {self._max_file_bytes:,} bytes. "
                        "Upload larger ones with the command-line client or git."
                    )
                start += part[: SAMPLE_BYTES - len(start)]
                await in_thread(file.write, part)
        self.operations[-1] = AddFile(path, Content(size, file=temporary), as_large=looks_binary(start, size))

    def clean_up(self) -> None:
        for operation in self.operations:
            if operation.content.file is not None:
                operation.content.file.unlink(missing_ok=True)
