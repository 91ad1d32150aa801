"""Sending the content of a file, whole or a part of it, from wherever it is kept."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

from starlette.responses import FileResponse, Response
from starlette.types import ASGIApp

from hubgate.server.http.request import HubRequest
from hubgate.server.http.streaming import Streamed
from hubgate.server.hub.git import objects, program
from hubgate.server.web.files.ranges import OutOfRange, Span, asked_span

_CHUNK = 256 * 1024


async def blob(request: HubRequest, folder: Path, sha: str, size: int, headers: dict[str, str]) -> ASGIApp:
    """From git."""
    headers = {**headers, "accept-ranges": "bytes"}
    etag = headers["etag"]
    try:
        span = asked_span(request.headers.get("range"), request.headers.get("if-range"), etag, size)
    except OutOfRange:
        return Response(status_code=416, headers={**headers, "content-range": f"bytes */{size}"})
    status = 200
    if span is not None:
        headers["content-range"] = f"bytes {span.start}-{span.end - 1}/{size}"
        status = 206
    part = span or Span(0, size)
    headers["content-length"] = str(part.length)
    if request.method == "HEAD":
        return Response(status_code=status, headers=headers)
    if size <= objects.SMALL:
        content = await objects.small_blob(folder, sha)
        return Response(content[part.start : part.end], status, headers)
    return Streamed(_streamed(folder, sha, part), headers, status)


async def file(place: Path, headers: dict[str, str]) -> FileResponse:
    """From disk. The library knows ranges, and hands the whole file to servers that can send it themselves."""
    media_type = headers.pop("content-type")
    return FileResponse(place, headers=headers, media_type=media_type)


async def _streamed(folder: Path, sha: str, part: Span) -> AsyncGenerator[bytes, None]:
    process = await program.start(["cat-file", "blob", sha], folder)
    try:
        out = process.stdout or asyncio.StreamReader()
        skip, left = part.start, part.length
        while left and (chunk := await out.read(_CHUNK)):
            if skip >= len(chunk):
                skip -= len(chunk)
                continue
            chunk = chunk[skip : skip + left]
            skip, left = 0, left - len(chunk)
            yield chunk
    finally:
        await program.end(process)
