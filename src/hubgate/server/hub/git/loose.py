"""Writing large blobs without libgit2, which blocks the whole interpreter while it hashes and compresses. The code here
lets other threads run. The format is git's loose object: deflated header and content, named by the SHA-1 of both.
"""

import hashlib
import os
import secrets
import zlib
from pathlib import Path
from typing import BinaryIO

from hubgate.server.errors import NotFound

# Smaller blobs are written too fast to block anything.
LARGE = 64 * 1024
_CHUNK = 256 * 1024


def write_loose(folder: Path, source: BinaryIO, size: int) -> str:
    """Write a loose blob and return its id. The caller syncs it."""
    # Git's programs put temporary files here too, and housekeeping deletes old ones.
    temporary = folder / "objects/pack" / f"tmp_obj_{secrets.token_hex(8)}"
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o444)
    except FileNotFoundError:
        # Deleted concurrently.
        raise NotFound("Repository not found", code="RepoNotFound") from None
    try:
        with os.fdopen(descriptor, "wb") as file:
            sha = _deflate(source, size, file)
        path = folder / "objects" / sha[:2] / sha[2:]
        path.parent.mkdir(exist_ok=True)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    return sha


def _deflate(source: BinaryIO, size: int, file: BinaryIO) -> str:
    header = b"blob %d\0" % size
    # Speed over size, as git does for loose objects, which are packed later.
    digest, deflater = hashlib.sha1(header, usedforsecurity=False), zlib.compressobj(zlib.Z_BEST_SPEED)
    file.write(deflater.compress(header))
    count = 0
    while part := source.read(_CHUNK):
        count += len(part)
        digest.update(part)
        file.write(deflater.compress(part))
    file.write(deflater.flush())
    if count != size:
        raise ValueError(f"{count} bytes instead of {size}")
    return digest.hexdigest()
