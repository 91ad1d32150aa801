"""Copies content from one store to another while the hub is serving.

Both stores are listed in the same order, and content that the target has in the same size is skipped, so an interrupted
copy continues where it stopped. The hash of every copied object is computed on the way, and compared with its name if
that is a SHA-256; the target stores only content that matches the hash.
"""

import asyncio
import hashlib
import os
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct

from hubgate.server.objects.model import ObjectMissing, Objects, StoredObject
from hubgate.server.objects.threads import in_hash_thread, in_thread

# Everything that the hub stores is under one of these; in the data folder, these are folders (`storage/archive.py`).
KINDS = ("lfs", "xorbs")
_CONCURRENT = 4
_NAMED_BY_SHA256 = re.compile(r"lfs/../../([0-9a-f]{64})\Z")

OnCopied = Callable[[StoredObject], None]


class Copied(Struct):
    """The result: counts, and the keys of content that is damaged in the source or in the target."""

    objects: int = 0
    bytes: int = 0
    existing: int = 0
    damaged: list[str] = []


class Copying(Struct, frozen=True):
    """`temporary` returns the path of a new temporary file. With `verify`, the target is read again, including content
    that it had before.
    """

    source: Objects
    target: Objects
    temporary: Callable[[], Path]
    verify: bool = False

    async def run(self, on_copied: OnCopied = lambda _: None) -> Copied:
        result = Copied()
        for kind in KINDS:
            await self._in_parallel(_differences(self.source, self.target, f"{kind}/"), result, on_copied)
        return result

    async def _in_parallel(
        self, found: AsyncGenerator[tuple[StoredObject, bool], None], result: Copied, on_copied: OnCopied
    ) -> None:
        """Copy what is missing, a few objects at once."""
        turns = asyncio.Semaphore(_CONCURRENT)

        async def copy(item: StoredObject, *, exists: bool) -> None:
            try:
                await self._copy(item, result, on_copied, exists=exists)
            finally:
                turns.release()

        try:
            async with aclosing(found), asyncio.TaskGroup() as group:
                async for item, exists in found:
                    await turns.acquire()
                    group.create_task(copy(item, exists=exists))
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0] from failures.exceptions[0].__cause__

    async def _copy(self, item: StoredObject, result: Copied, on_copied: OnCopied, *, exists: bool) -> None:
        if exists and not self.verify:
            result.existing += 1
            return
        name = _NAMED_BY_SHA256.match(item.key)
        if exists:
            digest = name[1] if name else await _digest(self.source, item)
            result.existing += 1
        else:
            try:
                digest = await self._transfer(item, name[1] if name else None)
            except ObjectMissing:
                # Deleted since it was listed.
                return
            if not digest:
                result.damaged.append(item.key)
                return
            result.objects += 1
            result.bytes += item.size
        if (self.verify and await _digest(self.target, item) != digest) or await self.target.size(
            item.key
        ) != item.size:
            result.damaged.append(item.key)
        on_copied(item)

    async def _transfer(self, item: StoredObject, expected: str | None) -> str:
        """Copy content and return its SHA-256; empty if it is not the expected one."""
        if path := await self.source.local_file(item.key):
            # The target is not a folder, so it reads the file, and does not move it.
            digest = await in_hash_thread(_digest_of_file, path)
            if expected in (None, digest):
                await self.target.put(item.key, path, digest)
                return digest
            return ""
        temporary = self.temporary()
        try:
            digest = await _download(self.source, item, temporary)
            if expected not in (None, digest):
                return ""
            await self.target.put(item.key, temporary, digest)
            return digest
        finally:
            await in_thread(temporary.unlink, missing_ok=True)


async def _differences(
    source: Objects, target: Objects, prefix: str
) -> AsyncGenerator[tuple[StoredObject, bool], None]:
    """The content of the source, in order, and whether the target has it in the same size."""
    async with aclosing(source.list(prefix)) as wanted, aclosing(target.list(prefix)) as existing:
        at = await anext(existing, None)
        async for item in wanted:
            while at is not None and at.key < item.key:
                at = await anext(existing, None)
            yield item, at is not None and at.key == item.key and at.size == item.size


async def _digest(objects: Objects, item: StoredObject) -> str:
    digest = hashlib.sha256()
    try:
        async for chunk in _chunks(objects, item):
            await in_hash_thread(digest.update, chunk)
    except ObjectMissing:
        return ""
    return digest.hexdigest()


async def _chunks(objects: Objects, item: StoredObject) -> AsyncIterator[bytes]:
    async with aclosing(objects.get(item.key, 0, item.size)) as chunks:
        async for chunk in chunks:
            yield chunk


async def _download(objects: Objects, item: StoredObject, target: Path) -> str:
    digest = hashlib.sha256()
    with target.open("wb") as file:

        def append(chunk: bytes) -> None:
            digest.update(chunk)
            file.write(chunk)

        async for chunk in _chunks(objects, item):
            await in_thread(append, chunk)
        await in_thread(_sync, file)
    return digest.hexdigest()


def _sync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def _digest_of_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
