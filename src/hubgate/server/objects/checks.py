"""Checks of an S3-compatible store, for `hubgate doctor`: rights, clock, conditional writes, links."""

import hashlib
import secrets
from collections.abc import AsyncIterator
from email.utils import parsedate_to_datetime

import httpx

from hubgate.server.clock import SECOND
from hubgate.server.errors import HubError
from hubgate.server.objects.model import StoreFinding, hashed_key
from hubgate.server.objects.s3 import answers
from hubgate.server.objects.s3.bodies import bytes_body
from hubgate.server.objects.s3.store_client import S3Objects

# Stores reject signatures that are a quarter of an hour old; a link is valid for that long too.
MAX_SKEW_SECONDS = 30
_LINK_SECONDS = 60


async def examine(objects: S3Objects) -> AsyncIterator[StoreFinding]:
    """Write, read, list and delete a small object. Stops at the first right that is missing."""
    content = secrets.token_hex(16).encode()
    key = hashed_key("doctor", content.decode())
    step = "write an object"
    try:
        await objects.put(key, content, hashlib.sha256(content).hexdigest())
        try:
            step = "read an object"
            if b"".join([part async for part in objects.get(key, 1, len(content))]) != content[1:]:
                yield StoreFinding("fail", f"{objects.name} returns other bytes than were written.")
            step = "list objects"
            if key not in [item.key async for item in objects.list("doctor/")]:
                yield StoreFinding("fail", f"{objects.name} does not list an object that was just written.")
            step = "upload in parts"
            await _start_and_abort(objects, key)
            yield await _conditions(objects, key, content)
            yield await _clock(objects, key)
            yield await _link(objects, key, content)
            step = "delete an object"
        finally:
            await objects.delete(key)
        if await objects.size(key) is not None:
            yield StoreFinding("warn", f"{objects.name} still shows a deleted object.")
        yield StoreFinding("ok", f"{objects.name}: objects can be written, read, listed and deleted")
    except HubError as error:
        yield StoreFinding("fail", f"cannot {step} in {objects.name}: {error.__cause__ or error.message}")


async def _start_and_abort(objects: S3Objects, key: str) -> None:
    started = await objects.transport.call("POST", key, {200}, query={"uploads": ""})
    upload = {"uploadId": answers.upload_id_of(started.body)}
    await objects.transport.call("DELETE", key, {200, 204}, query=upload)


async def _conditions(objects: S3Objects, key: str, content: bytes) -> StoreFinding:
    answer = await objects.transport.call(
        "PUT", key, {200, 412, 501}, headers={"if-none-match": "*"}, body=bytes_body(content)
    )
    if answer.status == 412:
        return StoreFinding("ok", "conditional writes are supported")
    text = "conditional writes are not supported: files that are uploaded twice at once are stored twice, without harm"
    return StoreFinding("warn", text)


async def _clock(objects: S3Objects, key: str) -> StoreFinding:
    answer, now = await objects.transport.call("HEAD", key, {200}), objects.transport.clock()
    try:
        remote = parsedate_to_datetime(answer.headers.get("date", "")).timestamp()
    except ValueError:
        return StoreFinding("warn", "the store does not say what time it is")
    skew = abs(now / SECOND - remote)
    if skew > MAX_SKEW_SECONDS:
        return StoreFinding("fail", f"this machine and the store differ by {skew:.0f} s. Synchronize both with NTP.")
    return StoreFinding("ok", f"its clock is within {MAX_SKEW_SECONDS} s of this machine's")


async def _link(objects: S3Objects, key: str, content: bytes) -> StoreFinding:
    link = await objects.link(key, _LINK_SECONDS, {"content-type": "text/plain", "content-disposition": "inline"})
    if link is None:
        return StoreFinding("ok", "clients download through the hub")
    try:
        received = await objects.transport.fetch(link)
    except httpx.HTTPError as error:
        shown = link.partition("?")[0]
        text = f"{shown} cannot be reached from here ({type(error).__name__}): clients may fail to download. "
        return StoreFinding("warn", text + "Set HUBGATE_OBJECTS_PUBLIC_ENDPOINT, or HUBGATE_OBJECTS_LINKS=off.")
    if received.status != 200 or received.body != content:
        error_code = f"{received.status} {received.error.code}".rstrip()
        return StoreFinding("fail", f"a signed link is answered with {error_code}. Check AWS_REGION and the endpoint.")
    if received.headers.get("content-type", "").partition(";")[0] != "text/plain":
        text = "the store ignores the content type of signed links: browsers may not show files as intended"
        return StoreFinding("warn", text)
    return StoreFinding("ok", "clients download with signed links")
