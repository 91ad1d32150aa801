"""The stores that the suite runs on, and hubs that use them."""

import hashlib
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from msgspec.structs import replace
from tests.bed.people import api, create_token, create_user
from tests.bed.repos import create_repo
from tests.bed.running_hub import RunningHub
from tests.bed.s3_server import BUCKET, S3Server

from hubgate.server.objects.model import Objects, hashed_key
from hubgate.server.objects.opening import StoreSettings, open_store

MIB = 1024 * 1024
# The smallest part that S3 accepts.
PART = 5 * MIB


@dataclass(frozen=True)
class Place:
    """A store: the data folder, or an empty prefix in a bucket."""

    folder: Path
    url: str = "folder"
    variables: dict[str, str] = field(default_factory=dict)

    @property
    def is_remote(self) -> bool:
        return self.url != "folder"

    @property
    def flags(self) -> dict[str, str]:
        """The settings of a hub that uses the store."""
        return {"objects_url": self.url}

    @asynccontextmanager
    async def opened(self, **settings: Any) -> AsyncIterator[Objects]:
        given = StoreSettings(self.folder, single_bytes=PART, part_bytes=PART)
        objects = open_store(self.url, replace(given, **settings), self.variables)
        try:
            yield objects
        finally:
            await objects.close()


def bucket_place(server: S3Server, folder: Path) -> Place:
    return Place(folder, f"s3://{BUCKET}/{secrets.token_hex(6)}", server.variables)


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def key_of(content: bytes) -> str:
    return hashed_key("lfs", sha256(content))


async def put(objects: Objects, content: bytes, key: str = "") -> str:
    """Store content; its key."""
    key = key or key_of(content)
    await objects.put(key, content, sha256(content))
    return key


async def read(objects: Objects, key: str, start: int, end: int) -> bytes:
    return b"".join([chunk async for chunk in objects.get(key, start, end)])


async def keys_in(objects: Objects, prefix: str = "lfs/", after: str = "") -> list[str]:
    return [item.key async for item in objects.list(prefix, after)]


def written_file(folder: Path, content: bytes) -> Path:
    """A temporary file, as uploads write it."""
    path = folder / "lfs/incoming" / secrets.token_hex(8)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


@contextmanager
def with_ada(hub: RunningHub) -> Iterator[httpx.Client]:
    """Ada, and her repo ada/tiny."""
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        create_repo(ada, "tiny")
        yield ada
