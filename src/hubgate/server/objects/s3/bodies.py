"""Bodies of requests, from memory or from a part of a file: only one chunk at a time is in memory."""

import hashlib
import os
from collections.abc import AsyncIterator
from pathlib import Path

from hubgate.server.objects.s3.transport import Body
from hubgate.server.objects.threads import in_hash_thread, in_thread

_CHUNK = 512 * 1024


def bytes_body(content: bytes) -> Body:
    async def parts() -> AsyncIterator[bytes]:
        yield content

    return Body(len(content), hashlib.sha256(content).hexdigest(), parts)


def file_body(path: Path, start: int, end: int, digest: str) -> Body:
    async def parts() -> AsyncIterator[bytes]:
        descriptor = await in_thread(os.open, path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            at = start
            while at < end and (chunk := await in_thread(os.pread, descriptor, min(_CHUNK, end - at), at)):
                at += len(chunk)
                yield chunk
        finally:
            os.close(descriptor)

    return Body(end - start, digest, parts)


async def part_body(path: Path, start: int, end: int) -> Body:
    """A part of a file. The file is read twice, because the signature, which is sent first, contains the hash."""
    return file_body(path, start, end, await in_hash_thread(_digest, path, start, end))


def _digest(path: Path, start: int, end: int) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        file.seek(start)
        left = end - start
        while left and (chunk := file.read(min(_CHUNK, left))):
            digest.update(chunk)
            left -= len(chunk)
    return digest.hexdigest()
