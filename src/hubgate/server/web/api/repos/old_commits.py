"""Commits in the older format, a single JSON object, converted to the lines of the present format (NDJSON)."""

from collections.abc import AsyncIterator
from typing import Any

import msgspec

from hubgate.server.edge.routes import MIB
from hubgate.server.errors import BadRequest, PayloadTooLarge, Unprocessable
from hubgate.server.http.request import HubRequest

# The whole body is in memory. Clients of that time sent larger files by LFS.
LARGEST = 32 * MIB


class OldCommit(msgspec.Struct, rename="camel"):
    summary: str
    description: str | None = None
    parent_commit: str | None = None
    files: list[dict[str, Any]] = []
    lfs_files: list[dict[str, Any]] = []
    deleted_files: list[dict[str, Any]] = []
    deleted_folders: list[dict[str, Any]] = []
    deleted_entries: list[dict[str, Any]] = []


async def as_lines(request: HubRequest) -> AsyncIterator[bytes]:
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > LARGEST:
            raise PayloadTooLarge(f"A commit in one piece has at most {LARGEST:,} bytes. Send lines (NDJSON) instead.")
    try:
        commit = msgspec.json.decode(body, type=OldCommit)
    except msgspec.ValidationError as error:
        raise Unprocessable(str(error)[:300]) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadRequest(f"The body is not JSON: {str(error)[:200]}") from None
    header = {"summary": commit.summary, "description": commit.description, "parentCommit": commit.parent_commit}
    yield _line("header", header)
    for key, values in (
        ("deletedFile", commit.deleted_files),
        ("deletedFolder", commit.deleted_folders),
        ("deletedEntry", commit.deleted_entries),
        ("file", commit.files),
        ("lfsFile", commit.lfs_files),
    ):
        for value in values:
            yield _line(key, value)


def _line(key: str, value: dict[str, Any]) -> bytes:
    return msgspec.json.encode({"key": key, "value": value}) + b"\n"
