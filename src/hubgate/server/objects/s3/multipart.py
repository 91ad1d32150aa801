"""Uploads in parts: the store joins them, and the content is visible only after that."""

import asyncio
import contextlib
from collections.abc import Mapping

from msgspec import Struct

from hubgate.server import failpoint
from hubgate.server.errors import HubError
from hubgate.server.objects.model import StoreProblem, StoreUnavailable
from hubgate.server.objects.s3 import answers
from hubgate.server.objects.s3.bodies import bytes_body, part_body
from hubgate.server.objects.s3.transport import Transport

# The store allows 10,000.
MAX_PARTS = 9_000
# Parts of one upload that are sent at once.
_CONCURRENT = 3
# Pages of unfinished uploads in one round; the next round begins anew.
_MAX_PAGES = 100
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
    transport: Transport, key: str, descriptor: int, size: int, part_bytes: int, headers: Mapping[str, str]
) -> int:
    """Upload a file in parts; the status of the last request: 200, 412 or 501, which only a conditional upload gets."""
    started = await transport.call("POST", key, {200}, query={"uploads": ""})
    upload_id = answers.upload_id_of(started.body)
    try:
        etags = await _send_parts(transport, key, upload_id, descriptor, size, part_bytes)
        failpoint.hit("object-before-join")
        status = await _join(transport, key, upload_id, etags, headers)
    except BaseException:
        # Also if the client has disconnected: parts that nobody joins would be stored until the next sweep.
        await asyncio.shield(_abort(transport, key, upload_id))
        raise
    if status == 200:
        await _require_joined(transport, key, size)
    return status


async def _send_parts(
    transport: Transport, key: str, upload_id: str, descriptor: int, size: int, part_bytes: int
) -> list[str]:
    turns = asyncio.Semaphore(_CONCURRENT)

    async def send(number: int) -> str:
        async with turns:
            start = (number - 1) * part_bytes
            body = await part_body(descriptor, start, min(start + part_bytes, size))
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
        return 200
    if answer.status in (412, 501):
        await _abort(transport, key, upload_id)
    return answer.status


async def _require_joined(transport: Transport, key: str, size: int) -> None:
    """The status 200 is sent before the parts are joined, so it says nothing: the answer may end early."""
    found = await transport.call("HEAD", key, {200, 404})
    if found.status == 404 or found.headers.get("content-length") != str(size):
        raise StoreUnavailable from StoreProblem(f"the store lost the upload of {key}")


async def _abort(transport: Transport, key: str, upload_id: str) -> None:
    # The sweep deletes what remains (`delete_unfinished`).
    with contextlib.suppress(HubError):
        await transport.call("DELETE", key, {200, 204, 404}, query={"uploadId": upload_id})


async def abort_unfinished(transport: Transport, before: int) -> int:
    """Abort uploads that were started before a time; how many there were."""
    prefix = transport.location.object_name("")
    query = {"uploads": "", "prefix": prefix, "encoding-type": "url", "max-uploads": "1000"}
    after, count = "", 0
    for _ in range(_MAX_PAGES):
        listed = await transport.call(
            "GET", None, {200, 501}, query={**query, **({"key-marker": after} if after else {})}
        )
        if listed.status == 501:
            return count
        page = answers.unfinished_uploads(listed.body)
        for upload in page.uploads:
            if upload.started_at < before:
                await _abort(transport, transport.location.key(upload.name), upload.upload_id)
                count += 1
        if page.next_after in ("", after):
            return count
        # Without the id of the last upload, which may be aborted by now; versitygw rejects even others. So further
        # uploads of the same name are left to the next round.
        after = page.next_after
    return count
