"""Content in an S3-compatible store: a key is the name of an object, under the prefix of the hub."""

import contextlib
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path

import httpx

from hubgate.server.objects.model import ObjectMissing, StoredObject, StoreProblem, StoreUnavailable, check_key
from hubgate.server.objects.s3 import answers
from hubgate.server.objects.s3.bodies import bytes_body, file_body
from hubgate.server.objects.s3.multipart import PartSizes, abort_unfinished, upload_in_parts
from hubgate.server.objects.s3.transport import Answer, Attempts, Transport
from hubgate.server.objects.threads import in_thread

# After so many bytes a failure counts as the first: a download of hours survives many short failures.
_PROGRESS = 8 * 1024 * 1024
_ONLY_NEW = {"if-none-match": "*"}
_RESPONSE_HEADERS = {"content-type": "response-content-type", "content-disposition": "response-content-disposition"}


class S3Objects:
    """Implements `Objects` in a bucket. `public_endpoint` is where clients reach the store, if not where the hub does;
    `with_links`: clients download from the store.
    """

    def __init__(
        self, transport: Transport, sizes: PartSizes, public_endpoint: str = "", *, with_links: bool = True
    ) -> None:
        self.transport = transport
        self._sizes = sizes
        self._public_endpoint = public_endpoint
        self._with_links = with_links
        self._has_conditions = True

    @property
    def name(self) -> str:
        return self.transport.location.name

    async def put(self, key: str, content: Path | bytes, digest: str) -> bool:
        check_key(key)
        size = len(content) if isinstance(content, bytes) else (await in_thread(content.stat)).st_size
        existing = await self.size(key)
        if existing == size:
            return False
        # Content of another size is damaged, and is replaced.
        condition = _ONLY_NEW if existing is None and self._has_conditions else {}
        status = await self._upload(key, content, size, digest, condition)
        if status == 501 and condition:
            self._has_conditions = False
            status = await self._upload(key, content, size, digest, {})
        return status == 200

    async def _upload(
        self, key: str, content: Path | bytes, size: int, digest: str, condition: Mapping[str, str]
    ) -> int:
        """Upload content; the status: 200, or 412 or 501 with a condition."""
        if isinstance(content, Path) and size > self._sizes.single_bytes:
            return await upload_in_parts(self.transport, key, content, size, self._sizes.of(size), condition)
        body = bytes_body(content) if isinstance(content, bytes) else file_body(content, 0, size, digest)
        expected = {200, 412, 501} if condition else {200}
        return (await self.transport.call("PUT", key, expected, headers=condition, body=body)).status

    async def get(self, key: str, start: int, end: int) -> AsyncGenerator[bytes, None]:
        check_key(key)
        at, attempts, renewed_at = start, Attempts(self.transport.pace), start
        while at < end:
            try:
                async with contextlib.aclosing(self._get_once(key, at, end)) as chunks:
                    async for chunk in chunks:
                        at += len(chunk)
                        yield chunk
                if at >= end:
                    return
                problem = StoreProblem(f"{key}: the answer ended after {at - start} of {end - start} bytes")
            except httpx.TransportError as error:
                problem = StoreProblem(f"{key}: {type(error).__name__} {error} after {at - start} bytes")
                if isinstance(error, httpx.PoolTimeout):
                    raise StoreUnavailable from problem
            if at - renewed_at >= _PROGRESS:
                attempts, renewed_at = Attempts(self.transport.pace), at
            if not await attempts.again():
                raise StoreUnavailable from problem

    async def _get_once(self, key: str, at: int, end: int) -> AsyncGenerator[bytes, None]:
        """Bytes of one answer, never more than requested. Ends without bytes if the request should be repeated."""
        left = end - at
        async with self.transport.stream("GET", key, headers={"range": f"bytes={at}-{end - 1}"}) as response:
            if response.status_code == 404:
                raise ObjectMissing(key)
            if response.status_code != 206:
                answer = Answer(response.status_code, response.headers)
                if self.transport.may_pass(answer):
                    return
                raise self.transport.failure("GET", key, answer)
            if not response.headers.get("content-range", "").startswith(f"bytes {at}-{end - 1}/"):
                raise StoreUnavailable from StoreProblem(f"{key}: the store sent another range")
            # As received: collecting larger chunks would lose what was received before a failure.
            async for chunk in response.aiter_raw():
                if len(chunk) > left:
                    raise StoreUnavailable from StoreProblem(f"{key}: the store sent more bytes than requested")
                left -= len(chunk)
                yield chunk

    async def link(
        self, key: str, seconds: int, headers: Mapping[str, str], span: tuple[int, int] | None = None
    ) -> str | None:
        if not self._with_links:
            return None
        transport = self.transport
        address = transport.location.address(check_key(key), self._public_endpoint)
        query = {_RESPONSE_HEADERS[name]: value for name, value in headers.items() if name in _RESPONSE_HEADERS}
        fixed = {"range": f"bytes={span[0]}-{span[1] - 1}"} if span is not None else {}
        return transport.signer.link("GET", address, query, seconds, transport.clock(), fixed)

    async def local_file(self, key: str) -> Path | None:  # noqa: ARG002
        return None

    async def size(self, key: str) -> int | None:
        answer = await self.transport.call("HEAD", check_key(key), {200, 404})
        return int(answer.headers.get("content-length", "-1")) if answer.status == 200 else None

    async def delete(self, key: str) -> None:
        await self.transport.call("DELETE", check_key(key), {200, 204, 404})

    async def list(self, prefix: str, after: str = "") -> AsyncGenerator[StoredObject, None]:
        location, token = self.transport.location, ""
        first = {"start-after": location.object_name(after)} if after else {}
        while True:
            query = {
                "list-type": "2",
                "prefix": location.object_name(prefix),
                "encoding-type": "url",
                "max-keys": "1000",
            }
            query |= {"continuation-token": token} if token else first
            page = answers.page_of((await self.transport.call("GET", None, {200}, query=query)).body)
            for item in page.objects:
                yield StoredObject(location.key(item.name), item.size)
            if not page.next_token:
                return
            token = page.next_token

    async def delete_unfinished(self, before: int) -> int:
        return await abort_unfinished(self.transport, before)

    async def close(self) -> None:
        await self.transport.close()
