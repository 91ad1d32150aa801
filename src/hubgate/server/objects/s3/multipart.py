"""Uploads in parts: the store joins them, and the content is visible only after that."""

import asyncio
import contextlib
import logging
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from hubgate.server import failpoint
from hubgate.server.errors import HubError
from hubgate.server.objects.model import StoreProblem, StoreUnavailable
from hubgate.server.objects.s3 import answers
from hubgate.server.objects.s3.bodies import bytes_body, part_body
from hubgate.server.objects.s3.transport import Transport

log = logging.getLogger("hubgate.objects")

# The store allows 10,000.
MAX_PARTS = 9_000
# Parts of one upload that are sent at once.
_CONCURRENT = 3
# Joining a terabyte takes minutes, in which the store sends nothing or spaces.
_JOIN_SECONDS = 600.0


class PartSizes(Struct, frozen=True):
    # Larger content is sent in parts.
    single_bytes: int = 64 * 1024 * 1024
    # At least 5 MiB, which the store requires.
    part_bytes: int = 32 * 1024 * 1024

    def of(self, size: int) -> int:
        return max(self.part_bytes, -(-size // MAX_PARTS))


async def upload_in_parts(
    transport: Transport, key: str, path: Path, size: int, part_bytes: int, headers: Mapping[str, str]
) -> int:
    """Upload a file in parts; the status of the last request: 200, 412 or 501, which only a conditional upload gets."""
    started = await transport.call("POST", key, {200}, query={"uploads": ""})
    upload_id = answers.upload_id_of(started.body)
    try:
        etags = await _send_parts(transport, key, upload_id, path, size, part_bytes)
        failpoint.hit("object-before-join")
        return await _join(transport, key, upload_id, etags, headers)
    except BaseException:
        # Also if the client has disconnected: parts that nobody joins would be stored until the next sweep.
        await asyncio.shield(_abort(transport, key, upload_id))
        raise


async def _send_parts(
    transport: Transport, key: str, upload_id: str, path: Path, size: int, part_bytes: int
) -> list[str]:
    turns = asyncio.Semaphore(_CONCURRENT)

    async def send(number: int) -> str:
        async with turns:
            start = (number - 1) * part_bytes
            body = await part_body(path, start, min(start + part_bytes, size))
            query = {"partNumber": str(number), "uploadId": upload_id}
            answer = await transport.call("PUT", key, {200}, query=query, body=body)
            failpoint.hit("object-part-sent")
            return answer.headers.get("etag", "")

    count = -(-size // part_bytes)
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(send(number)) for number in range(1, count + 1)]
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from failures.exceptions[0].__cause__
    return [task.result() for task in tasks]


async def _join(transport: Transport, key: str, upload_id: str, etags: list[str], headers: Mapping[str, str]) -> int:
    answer = await transport.call(
        "POST",
        key,
        {200, 404, 412, 501},
        query={"uploadId": upload_id},
        headers=headers,
        body=bytes_body(answers.completion(etags)),
        silence_seconds=_JOIN_SECONDS,
    )
    if answer.status == 404:
        # The upload does not exist any more: an earlier attempt, whose answer was lost, has joined the parts.
        found = await transport.call("HEAD", key, {200, 404})
        if found.status == 404:
            raise StoreUnavailable from StoreProblem(f"the store lost the upload of {key}")
        return 200
    if answer.status in (412, 501):
        await _abort(transport, key, upload_id)
    return answer.status


async def _abort(transport: Transport, key: str, upload_id: str) -> None:
    # The sweep deletes what remains (`delete_unfinished`).
    with contextlib.suppress(HubError):
        await transport.call("DELETE", key, {200, 204, 404}, query={"uploadId": upload_id})


async def abort_unfinished(transport: Transport, before: int) -> int:
    """Abort uploads that were started before a time."""
    prefix = transport.location.object_name("")
    query = {"uploads": "", "prefix": prefix, "encoding-type": "url", "max-uploads": "1000"}
    listed = await transport.call("GET", None, {200, 501}, query=query)
    if listed.status == 501:
        return 0
    old = [upload for upload in answers.unfinished_uploads(listed.body) if upload.started_at < before]
    for upload in old:
        await _abort(transport, transport.location.key(upload.name), upload.upload_id)
    return len(old)
