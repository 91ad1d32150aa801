"""Writing a large blob: by hand, because libgit2 keeps all of Python waiting while it hashes and compresses. Here both
let other threads run. The format is git's own: deflated header and content, under the SHA-1 of both.
"""

import hashlib
import os
import secrets
import zlib
from pathlib import Path
from typing import BinaryIO

from hubgate.server.errors import NotFound

# Below this it is over before anyone notices.
LARGE = 64 * 1024
_CHUNK = 256 * 1024


def write_loose(folder: Path, source: BinaryIO, size: int) -> str:
    """Its id. The caller syncs it."""
    # Where git's own programs put what is half done, and where it is swept from.
    draft = folder / "objects/pack" / f"tmp_obj_{secrets.token_hex(8)}"
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o444)
    except FileNotFoundError:
        # Deleted meanwhile.
        raise NotFound("Repository not found.", code="RepoNotFound") from None
    try:
        with os.fdopen(descriptor, "wb") as file:
            sha = _deflated(source, size, file)
        place = folder / "objects" / sha[:2] / sha[2:]
        place.parent.mkdir(exist_ok=True)
        draft.replace(place)
    finally:
        draft.unlink(missing_ok=True)
    return sha


def _deflated(source: BinaryIO, size: int, file: BinaryIO) -> str:
    header = b"blob %d\0" % size
    # As git does with loose objects: speed before size, they are packed later.
    digest, deflating = hashlib.sha1(header, usedforsecurity=False), zlib.compressobj(zlib.Z_BEST_SPEED)
    file.write(deflating.compress(header))
    count = 0
    while part := source.read(_CHUNK):
        count += len(part)
        digest.update(part)
        file.write(deflating.compress(part))
    file.write(deflating.flush())
    if count != size:
        raise ValueError(f"{count} bytes instead of {size}")
    return digest.hexdigest()
