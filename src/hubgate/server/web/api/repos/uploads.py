"""`/preupload/{rev}` and `/commit/{rev}`: changing a repo over HTTP."""

import re
from collections.abc import AsyncIterator, Sequence

import msgspec

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import caller_of
from hubgate.server.access.policy import decide
from hubgate.server.edge.guard import Guard
from hubgate.server.edge.routes import MIB, Query, Route, Target
from hubgate.server.errors import Unprocessable
from hubgate.server.http.render import JsonResponse
from hubgate.server.http.request import HubRequest
from hubgate.server.hub.commits.committing import commit
from hubgate.server.hub.commits.preupload import Answer, Candidate, answers
from hubgate.server.hub.commits.reading import Reader
from hubgate.server.hub.context import Repos
from hubgate.server.hub.discussions.opening import commit_as_pull_request
from hubgate.server.hub.git.threads import in_thread
from hubgate.server.hub.repos import finding
from hubgate.server.hub.repos.model import Repo, RepoType
from hubgate.server.web.api.repos import destinations, queries
from hubgate.server.web.api.repos.destinations import Destination
from hubgate.server.web.api.repos.old_commits import as_lines
from hubgate.server.web.repo_routes import api_routes, at_repo, at_repo_needing

# Existing clients ask about 256 at once.
MOST_FILES = 2_000
# A folder of small files is sent as one commit, a hundred megabytes at a time; others send more.
LARGEST_COMMIT = 4096 * MIB
COMMIT_SECONDS = 600.0

BY_LFS = "This hub takes large files by LFS, not by Xet. If the upload fails, set HF_HUB_DISABLE_XET=1 and try again."
KEEP_SHARDS = (
    "If push_to_hub ends with 'No such file or directory', set HF_HUB_DISABLE_XET=1 and HF_HUB_USER_AGENT_ORIGIN=lfs "
    "and try again."
)
_OWN_LARGE_FILES = re.compile(r"hf_hub/(\d+)\.(\d+)")
_SHARD = re.compile(r"-\d{5}-of-\d{5}\.parquet\Z")


class Preupload(msgspec.Struct, rename="camel"):
    files: list[Candidate]
    git_ignore: str | None = None
    git_attributes: str | None = None


class PreuploadAnswer(msgspec.Struct):
    files: list[Answer]


class CommitMade(msgspec.Struct, rename="camel", omit_defaults=True):
    success: bool
    commit_oid: str
    commit_url: str
    hook_output: str
    pull_request_url: str | None = None


def routes(repos: Repos, guard: Guard) -> list[Route]:
    async def needs(request: HubRequest, repo: Repo) -> Target[Destination]:
        as_pull_request = queries.flag(request.query_fields(), "create_pr")
        return await destinations.target(repos, repo, request.param("rev"), as_pull_request=as_pull_request)

    async def preupload(request: HubRequest, to: Destination) -> JsonResponse:
        repo = to.repo
        await destinations.ref_at(repos, to)
        asked = await request.read_json(Preupload)
        if len(asked.files) > MOST_FILES:
            raise Unprocessable(f"Ask about at most {MOST_FILES:,} files at once.")
        revision = await finding.revision(repos, repo, to.rev)
        client = request.headers.get("user-agent", "")
        said = await answers(
            repos,
            repo,
            revision.sha,
            asked.files,
            ignore=asked.git_ignore,
            attributes=asked.git_attributes,
            inside_commits=insists_on_xet(client) and not sends_early(client),
            tell_hashes=decide(caller_of(request).identity, Action.REPO_READ_CONTENT, repo.judged()).allowed,
        )
        response = JsonResponse(PreuploadAnswer(said))
        if insists_on_xet(client) and any(answer.upload_mode == "lfs" for answer in said):
            # Shown at once; of what xet-write-token answers these clients show only the status.
            response.headers["x-hf-warning"] = f"large-files; {BY_LFS}"
        elif insists_on_xet(client) and repo.type == RepoType.DATASET.value and may_send_early(client, asked.files):
            response.headers["x-hf-warning"] = f"shards; {KEEP_SHARDS}"
        return response

    async def commit_to(request: HubRequest, to: Destination) -> JsonResponse:
        repo, user = to.repo, caller_of(request).user
        await destinations.ref_at(repos, to)
        reader = Reader(repos.large_files.draft, repos.regular_upload_max)
        try:
            in_one_piece = request.content_type == "application/json"
            asked = await reader.read(as_lines(request) if in_one_piece else _parts(request))
            ref = await destinations.again(repos, (await guard.again(request)).identity, to)
            make = commit_as_pull_request if to.as_pull_request else commit
            made = await make(repos, repo, user, ref, asked)
        finally:
            await in_thread(reader.clean_up)
        address = repos.base_url + repo.path
        said = CommitMade(True, made.sha, f"{address}/commit/{made.sha}", "")
        if made.pull_request is not None:
            said.pull_request_url = f"{address}/discussions/{made.pull_request}"
        return JsonResponse(said)

    async def no_xet(_: HubRequest, __: Repo) -> JsonResponse:
        raise Unprocessable(BY_LFS)

    query = (Query("create_pr", "Make a pull request of it.", {"type": "boolean"}),)
    done = {412: ("Somebody else was faster.", None), 422: ("Not like this.", None)}
    return [
        *api_routes(
            "POST",
            "/preupload/{rev:path}",
            at_repo_needing(repos, destinations.ACTIONS, needs, preupload),
            "How to send files to a repo",
            {200: ("Done.", PreuploadAnswer), **done},
            query=query,
            body=Preupload,
            body_cap=16 * MIB,
            body_seconds=60.0,
        ),
        *api_routes(
            "POST",
            "/commit/{rev:path}",
            at_repo_needing(repos, destinations.ACTIONS, needs, commit_to),
            "Commit to a repo",
            {200: ("Done.", CommitMade), **done},
            query=query,
            body_cap=LARGEST_COMMIT,
            body_seconds=COMMIT_SECONDS,
        ),
        *api_routes(
            "GET",
            "/xet-write-token/{rev:path}",
            at_repo(repos, Action.REPO_SEE, no_xet),
            "Not here: sets out what to do with a repo",
            {422: (BY_LFS, None)},
        ),
    ]


def insists_on_xet(user_agent: str) -> bool:
    """Clients from 1.20 on send large files to Xet without asking, unless told otherwise; ones that name an origin have
    said that they were.
    """
    match = _OWN_LARGE_FILES.search(user_agent)
    return match is not None and (int(match[1]), int(match[2])) >= (1, 20) and "origin/" not in user_agent


def sends_early(user_agent: str) -> bool:
    """The datasets library sends each file as it is made and has none left when it commits: inside the commit they
    cannot come.
    """
    return "datasets/" in user_agent


def may_send_early(user_agent: str, files: Sequence[Candidate]) -> bool:
    """Before 5.0 that library does not give its name; it sends one shard at a time. So do others that keep their file,
    and theirs must stay in the commit: with a default set-up it can come no other way.
    """
    return user_agent.startswith("unknown/") and len(files) == 1 and _SHARD.search(files[0].path) is not None


async def _parts(request: HubRequest) -> AsyncIterator[bytes]:
    async for part in request.stream():
        if part:
            yield part
