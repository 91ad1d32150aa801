"""`/preupload/{rev}` and `/commit/{rev}`: commits over HTTP."""

from collections.abc import AsyncIterator
from typing import Any

import msgspec

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import caller_of
from hubgate.server.access.policy import decide
from hubgate.server.edge.guard import Guard
from hubgate.server.edge.routes import MIB, Query, Route, Target
from hubgate.server.errors import BadRequest, PayloadTooLarge, Unprocessable
from hubgate.server.http.render import JsonResponse
from hubgate.server.http.request import HubRequest
from hubgate.server.hub.commits.commit import commit
from hubgate.server.hub.commits.preupload import Answer, Candidate, added_size, upload_modes
from hubgate.server.hub.commits.request_reader import CommitRequestReader
from hubgate.server.hub.context import Repos
from hubgate.server.hub.discussions.pull_requests import commit_as_pull_request
from hubgate.server.hub.lfs.files import full_disk_named
from hubgate.server.hub.quotas.quotas import check_announced
from hubgate.server.hub.repos import lookup
from hubgate.server.hub.repos.model import Repo
from hubgate.server.hub.repos.store import Ref
from hubgate.server.web.api.repos import destinations, queries
from hubgate.server.web.api.repos.destinations import Destination
from hubgate.server.web.repo_routes import api_routes, repo_endpoint_with_target, revision_path_of

# Existing clients send 256 files per request.
MAX_FILES = 2_000
# Some clients split a folder of small files into commits of 100 MB; others send more at once.
LARGEST_COMMIT = 4096 * MIB
COMMIT_SECONDS = 600.0
# The whole body is in memory. Clients that use this older format send larger files via LFS.
LARGEST_OBJECT = 32 * MIB


class Preupload(msgspec.Struct, rename="camel"):
    files: list[Candidate]
    git_ignore: str | None = None
    git_attributes: str | None = None


class PreuploadAnswer(msgspec.Struct):
    files: list[Answer]


class CommitCreated(msgspec.Struct, rename="camel", omit_defaults=True):
    success: bool
    commit_oid: str
    commit_url: str
    hook_output: str
    pull_request_url: str | None = None


def routes(repos: Repos, guard: Guard) -> list[Route]:
    async def find_target(request: HubRequest, repo: Repo) -> Target[Destination]:
        as_pull_request = queries.flag(request.query_fields(), "create_pr")
        return await destinations.find_target(repos, repo, request.param("rev"), as_pull_request=as_pull_request)

    async def preupload(request: HubRequest, destination: Destination) -> JsonResponse:
        repo = destination.repo
        await destinations.ref_at(repos, destination, _found_ref(request, destination))
        body = await request.read_json(Preupload)
        if len(body.files) > MAX_FILES:
            raise Unprocessable(f"Send at most {MAX_FILES:,} files at once.")
        revision = await lookup.revision(repos, repo, destination.rev)
        results = await upload_modes(
            repos,
            repo,
            revision.sha,
            body.files,
            ignore=body.git_ignore,
            attributes=body.git_attributes,
            may_read=decide(caller_of(request).identity, Action.REPO_READ_CONTENT, repo.as_resource()).allowed,
        )
        if decide(caller_of(request).identity, Action.REPO_WRITE, repo.as_resource()).allowed:
            await check_announced(repos, repo, added_size(body.files, results))
        return JsonResponse(PreuploadAnswer([result.answer for result in results]))

    async def commit_to(request: HubRequest, destination: Destination) -> JsonResponse:
        repo = destination.repo
        await destinations.ref_at(repos, destination, _found_ref(request, destination))
        reader = CommitRequestReader(repos.large_files.temporary, repos.regular_upload_max)
        try:
            is_single_object = request.content_type == "application/json"
            with full_disk_named():
                commit_request = await reader.read(_as_lines(request) if is_single_object else _parts(request))
            caller = await guard.reload_caller(request)
            ref = await destinations.check_again(repos, caller.identity, destination)
            create = commit_as_pull_request if destination.as_pull_request else commit
            created = await create(repos, repo, caller, ref, commit_request)
        finally:
            await reader.clean_up()
        address = repos.base_url + repo.path
        answer = CommitCreated(True, created.sha, f"{address}/commit/{created.sha}", "")
        if created.pull_request is not None:
            answer.pull_request_url = f"{address}/discussions/{created.pull_request}"
        return JsonResponse(answer)

    query = (Query("create_pr", "Create a pull request with the commit.", {"type": "boolean"}),)
    failures = {412: ("The branch was changed by another request.", None), 422: ("The request is invalid.", None)}
    return [
        *api_routes(
            "POST",
            "/preupload/{rev:path}",
            repo_endpoint_with_target(repos, destinations.ACTIONS, find_target, preupload),
            "Get the upload method for files of a repo",
            {200: ("The upload method of each file.", PreuploadAnswer), **failures},
            query=query,
            body=Preupload,
            body_cap=16 * MIB,
            body_seconds=60.0,
        ),
        *api_routes(
            "POST",
            "/commit/{rev:path}",
            repo_endpoint_with_target(repos, destinations.ACTIONS, find_target, commit_to),
            "Commit to a repo",
            {200: ("The new commit.", CommitCreated), **failures},
            query=query,
            body_cap=LARGEST_COMMIT,
            body_seconds=COMMIT_SECONDS,
            streams=True,
        ),
    ]


def _found_ref(request: HubRequest, destination: Destination) -> Ref | None:
    """The ref that the whole end of the address names, which was found together with the repo."""
    at = revision_path_of(request)
    return at.ref if at.rev == destination.rev else None


async def _parts(request: HubRequest) -> AsyncIterator[bytes]:
    async for part in request.stream():
        if part:
            yield part


class SingleObjectCommit(msgspec.Struct, rename="camel"):
    """A commit in the older format, a single JSON object."""

    summary: str
    description: str | None = None
    parent_commit: str | None = None
    files: list[dict[str, Any]] = []
    lfs_files: list[dict[str, Any]] = []
    deleted_files: list[dict[str, Any]] = []
    deleted_folders: list[dict[str, Any]] = []
    deleted_entries: list[dict[str, Any]] = []


async def _as_lines(request: HubRequest) -> AsyncIterator[bytes]:
    """Convert a commit in the older format to the lines of the current format (NDJSON)."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > LARGEST_OBJECT:
            raise PayloadTooLarge(
                f"A commit as a single JSON object may have at most {LARGEST_OBJECT:,} bytes. Send NDJSON instead."
            )
    try:
        commit = msgspec.json.decode(body, type=SingleObjectCommit)
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
