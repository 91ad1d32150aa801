"""`POST /xet/v1/xorbs/…` and `POST /xet/v1/shards` (and `v2`, with progress): uploads of chunks and of files."""

import asyncio
import errno
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

import msgspec

from hubgate.server.access.caller import share_key_of
from hubgate.server.edge.guard import Guard
from hubgate.server.edge.routes import MIB, Endpoint, Route
from hubgate.server.errors import HubError, Unavailable
from hubgate.server.http.asgi import ASGIApp
from hubgate.server.http.render import JsonResponse
from hubgate.server.http.request import HubRequest
from hubgate.server.http.streaming import StreamedResponse
from hubgate.server.http.surface import Surface
from hubgate.server.hub.cas.shards import Progress, register_shard
from hubgate.server.hub.cas.xorbs import add_xorb, receive_xorb
from hubgate.server.hub.context import Repos
from hubgate.server.hub.git.threads import in_thread
from hubgate.server.hub.xet.hashes import parse_hash
from hubgate.server.hub.xet.shard_format import MAX_SHARD_SIZE
from hubgate.server.hub.xet.xorb import MAX_UPLOAD_SIZE
from hubgate.server.jobs.slots import Slots
from hubgate.server.objects.model import StoreFull
from hubgate.server.web.api.repos.destinations import Destination
from hubgate.server.web.xet.targets import sender_now, write_endpoint
from hubgate.server.web.xet.tokens import STORAGE_PATH, with_older

# A shard is in memory while it is received and verified; larger ones take turns.
SMALL_SHARD = 4 * MIB
# How often the progress of a verification is sent; clients disconnect after two minutes of silence.
PROGRESS_SECONDS = 5.0
BODY_SECONDS = 120.0
NDJSON = "application/x-ndjson"
BYTES = "application/octet-stream"


class XorbAdded(msgspec.Struct):
    was_inserted: bool


class ShardAdded(msgspec.Struct):
    # Always 1: the value has no meaning to clients.
    result: int = 1


def routes(repos: Repos, guard: Guard) -> list[Route]:
    slots = Slots(2, 1, "Too many large shards are being uploaded. Try again.")

    async def upload_xorb(request: HubRequest, destination: Destination) -> JsonResponse:
        name = request.param("hash")
        parse_hash(name)
        temporary = repos.large_files.temporary()
        try:
            received = await receive_xorb(_body(request), name, temporary)
            sender = await sender_now(repos, guard, request, destination)
            return JsonResponse(XorbAdded(await add_xorb(repos, sender, received)))
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise StoreFull from error
            raise
        finally:
            await in_thread(temporary.unlink, missing_ok=True)

    async def upload_shard(request: HubRequest, destination: Destination) -> JsonResponse:
        async with AsyncExitStack() as stack:
            data = await receive_shard(request, stack)
            reload_sender = partial(sender_now, repos, guard, request, destination)
            await register_shard(repos, await reload_sender(), data, Progress(), reload_sender)
        return JsonResponse(ShardAdded())

    async def upload_shard_with_progress(request: HubRequest, destination: Destination) -> ASGIApp:
        async with AsyncExitStack() as stack:
            data = await receive_shard(request, stack)
            reload_sender = partial(sender_now, repos, guard, request, destination)
            progress = Progress()
            registration = register_shard(repos, await reload_sender(), data, progress, reload_sender)
            events = _events(registration, progress, stack.pop_all())
        headers = {"content-type": NDJSON, "cache-control": "no-cache"}
        return StreamedResponse(events, headers, longest_stall=repos.limits.stall_seconds)

    async def receive_shard(request: HubRequest, stack: AsyncExitStack) -> bytes:
        """Receive a shard, in a slot if it is large, which `stack` releases."""
        if int(request.headers.get("content-length", str(MAX_SHARD_SIZE))) > SMALL_SHARD:
            await stack.enter_async_context(slots.acquire(share_key_of(request)))
        return b"".join([part async for part in _body(request)])

    return [
        *(
            _route(
                path,
                write_endpoint(repos, upload_xorb),
                "Upload a xorb, a container of chunks",
                ("The xorb is stored. was_inserted: it is new to you.", XorbAdded),
                MAX_UPLOAD_SIZE,
            )
            for path in with_older("/v1/xorbs/{prefix}/{hash}", "/xorb/{prefix}/{hash}")
        ),
        *(
            _route(
                path,
                write_endpoint(repos, upload_shard),
                "Register files whose chunks were uploaded",
                ("The files are registered.", ShardAdded),
                MAX_SHARD_SIZE,
            )
            for path in with_older("/v1/shards", "/shard/{prefix}/{hash}")
        ),
        _route(
            "/v2/shards",
            write_endpoint(repos, upload_shard_with_progress),
            "Register files whose chunks were uploaded, with progress",
            ("Lines of JSON; the last has the type result or error.", None),
            MAX_SHARD_SIZE,
        ),
    ]


def _route(path: str, endpoint: Endpoint, summary: str, answer: tuple[str, Any], cap: int) -> Route:
    return Route(
        "POST",
        STORAGE_PATH + path,
        endpoint,
        Surface.STORAGE,
        summary,
        answers={200: answer, 400: ("The upload is invalid; the error says why.", None)},
        body_type=BYTES,
        body_cap=cap,
        body_seconds=BODY_SECONDS,
        streams=True,
    )


async def _events(
    registration: Coroutine[Any, Any, None], progress: Progress, stack: AsyncExitStack
) -> AsyncGenerator[bytes, None]:
    """Register a shard and report its progress. The status was sent before, so an error is the last line."""
    async with stack:
        task = asyncio.create_task(registration)
        try:
            done: set[asyncio.Task[None]] = set()
            while not done:
                yield _line({"type": "validating", "verified": progress.verified, "total": progress.total})
                done, _ = await asyncio.wait({task}, timeout=PROGRESS_SECONDS)
            task.result()
            yield _line({"type": "result", "result": 1})
        except HubError as error:
            retryable = isinstance(error, Unavailable)
            yield _line({"type": "error", "message": error.message, "retryable": retryable})
        finally:
            task.cancel()


def _line(event: dict[str, Any]) -> bytes:
    return msgspec.json.encode(event) + b"\n"


async def _body(request: HubRequest) -> AsyncIterator[bytes]:
    async for part in request.stream():
        if part:
            yield part
