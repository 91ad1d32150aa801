"""Git LFS: the batch API, and the signed addresses for uploads and downloads."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from typing import Annotated, Any, Literal, TypeVar
from urllib.parse import quote

import msgspec
from msgspec import UNSET, UnsetType

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import Caller, caller_of, share_key_of
from hubgate.server.access.policy import decide
from hubgate.server.clock import SECOND
from hubgate.server.edge.routes import MIB, Check, Route, Target, public
from hubgate.server.errors import Forbidden, NotFound, Unprocessable
from hubgate.server.http.asgi import ASGIApp
from hubgate.server.http.render import LfsResponse
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.http.surface import Surface
from hubgate.server.hub.context import Repos
from hubgate.server.hub.guests import store as guest_store
from hubgate.server.hub.guests.charges import Charge, charge_of, charge_uploads, hidden_files, use_files
from hubgate.server.hub.lfs import contents, parts, store
from hubgate.server.hub.lfs.parts import PartLayout
from hubgate.server.hub.lfs.signed_urls import DOWNLOAD_VALIDITY_SECONDS, UrlGrant, upload_validity_seconds
from hubgate.server.hub.quotas.quotas import check_announced, check_file
from hubgate.server.hub.repos.model import Repo, RepoType
from hubgate.server.hub.repos.transactions import lock_repo
from hubgate.server.jobs.slots import Slots
from hubgate.server.storage.database import Tx
from hubgate.server.web.files.media_types import BYTES
from hubgate.server.web.files.responses import FileSender
from hubgate.server.web.files.stored_content import ContentSender
from hubgate.server.web.repo_routes import COMMON_ANSWERS, EndpointForType, repo_endpoint, repo_endpoint_with_target

T = TypeVar("T")
V = TypeVar("V")

MAX_OBJECTS = 1000
LARGEST_FILE = 1 << 40
# The maximum number of part URLs in one response. Files whose parts do not fit are uploaded in one piece.
MAX_PARTS = 2_000
CONCURRENT_LOOKUPS = 16


class LargeObject(msgspec.Struct):
    oid: Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}$")]
    size: Annotated[int, msgspec.Meta(ge=0, le=LARGEST_FILE)]


class BatchRequest(msgspec.Struct):
    operation: Literal["upload", "download"]
    objects: Annotated[list[LargeObject], msgspec.Meta(max_length=MAX_OBJECTS)]
    transfers: list[str] = msgspec.field(default_factory=lambda: ["basic"])
    ref: "BatchRef | None" = None


class BatchRef(msgspec.Struct):
    """The branch that a client uploads to."""

    name: str = ""


class UploadedPart(msgspec.Struct, rename="camel"):
    part_number: int
    etag: str


class Completion(msgspec.Struct):
    oid: str
    parts: list[UploadedPart]


class ObjectAnswer(msgspec.Struct):
    oid: str
    size: int
    authenticated: bool = True
    actions: dict[str, Any] | UnsetType = UNSET
    error: dict[str, Any] | UnsetType = UNSET


def routes(repos: Repos) -> list[Route]:
    sender = ContentSender(FileSender(repos.limits.stall_seconds), repos)
    # One for each upload: every join writes a copy of the whole file, and repeating the request costs a client nothing.
    joins = Slots(1_000, 1_000, "The parts of this file are being joined. Try again.", max_per_repo=1)

    async def batch(request: HubRequest, given: tuple[Repo, BatchRequest]) -> Response:
        repo, body = given
        charge = charge_of(repo, caller_of(request).identity)
        if body.operation == "download":
            hidden = await _hidden_from(repos, repo, caller_of(request), body.objects)
            results = await in_parallel(lambda item: _download_answer(repos, repo, item, hidden), body.objects)
        elif "xet" in body.transfers:
            # The client sends the files as chunks, with a token from this address. What they add is not known yet.
            uploads = await _uploads(repos, repo, charge, body.objects)
            href = _token_address(repos, repo, body.ref, by_guest=charge is not None)
            results = await in_parallel(lambda item: _chunked_answer(uploads, item, href), body.objects)
            return LfsResponse({"transfer": "xet", "objects": results, "hash_algo": "sha256"})
        else:
            uploads = await _uploads(repos, repo, charge, body.objects)
            await _charge(uploads, body.objects)
            # A part that is sent twice is stored twice, but a guest is charged once per file: guests get no parts.
            remaining_parts = MAX_PARTS if "multipart" in body.transfers and charge is None else 0
            planned: list[tuple[LargeObject, PartLayout | None]] = []
            for item in body.objects:
                layout = _layout(repos, item.size) if item.size >= repos.limits.multipart_threshold else None
                layout = layout if layout and layout.count <= remaining_parts else None
                planned.append((item, layout))
                remaining_parts -= layout.count if layout else 0
            seconds = upload_validity_seconds(sum(item.size for item in body.objects))
            results = await in_parallel(lambda plan: _upload_answer(uploads, *plan, seconds), planned)
        return LfsResponse({"transfer": "basic", "objects": results, "hash_algo": "sha256"})

    async def verify(request: HubRequest) -> Response:
        grant = _verified_grant(repos, request, "verify")
        body = await _read(request, LargeObject)
        if body.oid != grant.oid or not await _was_received(repos, grant, body.size):
            raise NotFound(f"The file {body.oid} was not received.")
        return LfsResponse({})

    async def locks(_: HubRequest, __: Repo) -> Response:
        # Returned, not raised, because raised errors are logged, and git-lfs asks for locks at each push.
        return LfsResponse({"message": "This hub does not support locks."}, 501)

    async def upload(request: HubRequest) -> Response:
        grant = _verified_grant(repos, request, "upload")
        await repos.large_files.receive(_body(request), grant.oid, grant.size)
        await _link(repos, grant)
        return Response(status_code=200)

    async def part(request: HubRequest) -> Response:
        grant = _verified_grant(repos, request, "part")
        length = _layout(repos, grant.size).length_of(grant.part)
        upload_id = f"{grant.repo_id}-{grant.oid}"
        etag = await parts.receive_part(repos.large_files, upload_id, grant.part, length, _body(request))
        return Response(status_code=200, headers={"etag": f'"{etag}"'})

    async def complete(request: HubRequest) -> Response:
        grant = _verified_grant(repos, request, "complete")
        body = await _read(request, Completion)
        if body.oid != grant.oid:
            raise Unprocessable("oid does not match the file of this URL.")
        in_order = sorted(body.parts, key=lambda sent: sent.part_number)
        if [sent.part_number for sent in in_order] != list(range(1, len(in_order) + 1)):
            raise Unprocessable("List every part once, numbered from 1.")
        etags = [sent.etag.strip('"') for sent in in_order]
        if not all(map(parts.is_fingerprint, etags)):
            raise Unprocessable("etag must be the value returned by the upload of the part.")
        upload_id = f"{grant.repo_id}-{grant.oid}"
        async with joins.acquire(share_key_of(request), upload_id):
            # A client that lost the response repeats the request after the parts were deleted.
            if not await _is_stored(repos, grant.repo_id, grant.oid, grant.size):
                layout = _layout(repos, grant.size)
                await parts.complete(repos.large_files, upload_id, grant.oid, layout, etags)
                await _link(repos, grant)
                # Afterwards: a client whose request failed repeats it, and needs the parts.
                await parts.delete(repos.large_files, upload_id)
        return LfsResponse({})

    async def download(request: HubRequest) -> ASGIApp:
        grant = _verified_grant(repos, request, "download")
        content = await contents.find(repos, grant.repo_id, grant.oid)
        if content is None or content.size != grant.size:
            raise NotFound("The repo or the file was deleted.", code="EntryNotFound")
        headers = {"content-type": BYTES, "etag": f'"{grant.oid}"'}
        return await sender.send(request, content, headers)

    batch_endpoint = repo_endpoint_with_target(repos, _BATCH_ACTIONS, _batch_target, batch)
    locks_endpoint = repo_endpoint(repos, Action.REPO_SEE, locks)
    signed = "/lfs/{verb}/{repo_id}/{oid}"
    return [
        *(
            _lfs_route(kind, "POST", "objects/batch", batch_endpoint, "Upload or download large files")
            for kind in RepoType
        ),
        *(
            _lfs_route(kind, method, tail, locks_endpoint, "Locks are not supported")
            for kind in RepoType
            for method, tail in (("GET", "locks"), ("POST", "locks"), ("POST", "locks/verify"))
        ),
        _signed_route("PUT", signed.replace("{verb}", "upload"), upload, "Upload a large file", LARGEST_FILE),
        _signed_route("PUT", signed.replace("{verb}", "part"), part, "Upload a part of a large file", LARGEST_FILE),
        _signed_route("POST", signed.replace("{verb}", "complete"), complete, "Join the uploaded parts", 4 * MIB),
        _signed_route(
            "POST", signed.replace("{verb}", "verify"), verify, "Check whether a large file was received", MIB
        ),
        _signed_route("GET", signed.replace("{verb}", "download"), download, "Download a large file", MIB),
    ]


def _lfs_route(kind: RepoType, method: str, tail: str, endpoint: EndpointForType, summary: str) -> Route:
    path = f"/{kind.url_prefix}{{namespace}}/{{repo}}.git/info/lfs/{tail}"
    answers = {**COMMON_ANSWERS, 200: ("URLs for each file.", None), 501: ("Not supported.", None)}
    about = f"{summary}: {kind.value}"
    return Route(method, path, endpoint(kind, path), Surface.LFS, about, answers=answers, body_cap=MIB)


def _signed_route(method: str, path: str, handler: Any, summary: str, cap: int) -> Route:
    # The signature in the address grants access, so the address is not logged.
    return Route(
        method,
        path,
        public(handler),
        Surface.FILE if method == "GET" else Surface.LFS,
        summary,
        body_cap=cap,
        body_seconds=120.0,
        streams=method == "PUT",
        secret_address=True,
    )


_BATCH_ACTIONS = (Action.REPO_SEE, Action.REPO_READ_CONTENT, Action.REPO_WRITE, Action.DISCUSSION_OPEN)


async def _batch_target(request: HubRequest, repo: Repo) -> Target[tuple[Repo, BatchRequest]]:
    """Require read access for downloads. Uploads are open to writers and to users who may open a pull request."""
    body, repo_resource = await _read(request, BatchRequest), repo.as_resource()
    if body.operation == "download":
        checks: tuple[Check, ...] = (Check(Action.REPO_READ_CONTENT, repo_resource),)
    elif repo.discussions_disabled:
        checks = (Check(Action.REPO_WRITE, repo_resource),)
    else:
        checks = (Check(Action.REPO_WRITE, repo_resource), Check(Action.DISCUSSION_OPEN, repo_resource))
    return Target((repo, body), repo_resource, further_checks=(checks,))


async def in_parallel(look_up: Callable[[V], Awaitable[T]], values: Sequence[V]) -> list[T]:
    """Look up many files, several at once: an object store takes its time for each."""
    turns = asyncio.Semaphore(CONCURRENT_LOOKUPS)

    async def in_turn(value: V) -> T:
        async with turns:
            return await look_up(value)

    try:
        async with asyncio.TaskGroup() as group:
            # If one fails, the others are cancelled: a store that is away is not asked a thousand times for nobody.
            tasks = [group.create_task(in_turn(value)) for value in values]
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from failures.exceptions[0].__cause__
    return [task.result() for task in tasks]


async def _hidden_from(repos: Repos, repo: Repo, caller: Caller, objects: Sequence[LargeObject]) -> set[str]:
    """Return the files hidden from the caller: uploads of guests that no pull request uses, so that strangers cannot
    use a repo as a file host (attack O72).
    """
    if decide(caller.identity, Action.REPO_WRITE, repo.as_resource()).allowed:
        return set()
    user_id, oids = caller.identity.user_id, {item.oid for item in objects}
    return await repos.db.read_long(lambda tx: guest_store.hidden_from(tx, repo.id, user_id, oids))


async def _download_answer(repos: Repos, repo: Repo, item: LargeObject, hidden: Collection[str]) -> ObjectAnswer:
    content = await contents.find(repos, repo.id, item.oid) if item.oid not in hidden else None
    if content is None:
        error = {"code": 404, "message": "File not found in this repo."}
        return ObjectAnswer(item.oid, item.size, error=error)
    grant = UrlGrant("download", repo.id, item.oid, content.size, repos.clock() + DOWNLOAD_VALIDITY_SECONDS * SECOND)
    link = None
    if content.chunked is None:
        link = await repos.large_files.link(item.oid, DOWNLOAD_VALIDITY_SECONDS, {"content-type": BYTES})
    action = {"href": link or grant.url(repos), "expires_in": DOWNLOAD_VALIDITY_SECONDS}
    return ObjectAnswer(item.oid, content.size, actions={"download": action})


def _layout(repos: Repos, size: int) -> PartLayout:
    return PartLayout(size, repos.limits.part_bytes)


class _Uploads(msgspec.Struct, frozen=True):
    """The uploads of a request. `hidden` are files that the repo does not have, as far as the caller may know."""

    repos: Repos
    repo: Repo
    charge: Charge | None
    hidden: Collection[str]

    async def is_stored(self, oid: str, size: int) -> bool:
        return oid not in self.hidden and await _is_stored(self.repos, self.repo.id, oid, size)


async def _uploads(repos: Repos, repo: Repo, charge: Charge | None, objects: Sequence[LargeObject]) -> _Uploads:
    return _Uploads(repos, repo, charge, await hidden_files(repos, repo, charge, {item.oid for item in objects}))


async def _charge(uploads: _Uploads, objects: Sequence[LargeObject]) -> None:
    """Charge a guest for these files before the upload, or check the owner's quota. A file that a guest uploaded is
    charged to the owner once a writer uploads it too.
    """
    repos, repo, charge = uploads.repos, uploads.repo, uploads.charge
    # If a request lists a file twice with different sizes, the larger size is charged.
    largest = {item.oid: item.size for item in sorted(objects, key=lambda item: item.size)}
    stored = await in_parallel(lambda file: uploads.is_stored(*file), list(largest.items()))
    missing = {oid: size for (oid, size), is_stored in zip(largest.items(), stored, strict=True) if not is_stored}
    if charge is None:
        await check_announced(repos, repo, sum(missing.values()))
        await use_files(repos, repo, None, {item.oid for item in objects})
    else:
        await charge_uploads(repos, repo, charge.user_id, missing)


def _token_address(repos: Repos, repo: Repo, ref: BatchRef | None, *, by_guest: bool) -> str:
    """The address of the token for an upload to a branch, or to a new pull request of a guest."""
    branch = ref.name.removeprefix("refs/heads/") if ref else ""
    rev, query = quote(branch or "main", safe=""), "?create_pr=1" if by_guest else ""
    return f"{repos.base_url}/api/{repo.repo_type.plural}/{repo.full_name}/xet-write-token/{rev}{query}"


async def _chunked_answer(uploads: _Uploads, item: LargeObject, href: str) -> ObjectAnswer:
    if await uploads.is_stored(item.oid, item.size):
        return ObjectAnswer(item.oid, item.size)
    return ObjectAnswer(item.oid, item.size, actions={"upload": {"href": href}})


async def _upload_answer(uploads: _Uploads, item: LargeObject, layout: PartLayout | None, seconds: int) -> ObjectAnswer:
    if await uploads.is_stored(item.oid, item.size):
        return ObjectAnswer(item.oid, item.size)
    repos, repo = uploads.repos, uploads.repo
    until, guest = repos.clock() + seconds * SECOND, uploads.charge.user_id if uploads.charge else ""
    # git-lfs requests new URLs after that.
    expiry = {"expires_in": seconds}
    # Signed as well: git-lfs sends no credentials to this address.
    verify = {"href": UrlGrant("verify", repo.id, item.oid, item.size, until, guest=guest).url(repos), **expiry}
    if layout is not None:
        header = {"chunk_size": str(layout.part_size)}
        for number in range(1, layout.count + 1):
            grant = UrlGrant("part", repo.id, item.oid, item.size, until, number)
            header[f"{number:05d}"] = grant.url(repos)
        whole = UrlGrant("complete", repo.id, item.oid, item.size, until)
        action = {"href": whole.url(repos), "header": header, **expiry}
    else:
        upload = UrlGrant("upload", repo.id, item.oid, item.size, until, guest=guest)
        action = {"href": upload.url(repos), **expiry}
    return ObjectAnswer(item.oid, item.size, actions={"upload": action, "verify": verify})


def _verified_grant(repos: Repos, request: HubRequest, verb: str) -> UrlGrant:
    query = request.query()
    numbers = [query.get(name, "") for name in ("size", "expires", "part")]
    if not all(number.isascii() and number.isdigit() and len(number) < 19 for number in numbers):
        raise Forbidden("This URL is incomplete.")
    size, expires, part = map(int, numbers)
    grant = UrlGrant(verb, request.param("repo_id"), request.param("oid"), size, expires, part, query.get("guest", ""))
    grant.check(repos.secret, query.get("signature", ""), repos.clock())
    return grant


async def _is_stored(repos: Repos, repo_id: str, oid: str, size: int) -> bool:
    content = await contents.find(repos, repo_id, oid)
    return content is not None and content.size == size


async def _was_received(repos: Repos, grant: UrlGrant, size: int) -> bool:
    """Whether the repo has the file; for a guest, whether the guest sent it."""
    if grant.guest:
        oids = [grant.oid]
        if not await repos.db.read(lambda tx: guest_store.received_among(tx, grant.guest, grant.repo_id, oids)):
            return False
    return await store.size_of(repos.db, grant.repo_id, grant.oid) == size


async def _link(repos: Repos, grant: UrlGrant) -> None:
    now = repos.clock()

    async def unit(tx: Tx) -> None:
        if not grant.guest:
            await check_file(tx, repos, grant.repo_id, grant.oid, grant.size)
        await lock_repo(tx, grant.repo_id)
        await store.link(tx, grant.repo_id, grant.oid, grant.size, None, now, by_guest=grant.guest != "")
        if grant.guest:
            await guest_store.set_received(tx, grant.guest, grant.repo_id, [grant.oid])

    await repos.db.write_long(unit)


async def _read(request: HubRequest, shape: type[T]) -> T:
    """Decode a JSON body without checking its content type: LFS clients send their own."""
    body = await request.body()
    try:
        return msgspec.json.decode(body, type=shape)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Unprocessable(str(error)[:300]) from None


async def _body(request: HubRequest) -> AsyncIterator[bytes]:
    async for part in request.stream():
        if part:
            yield part
