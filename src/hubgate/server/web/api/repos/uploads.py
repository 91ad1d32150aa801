"""`/preupload/{rev}` and `/commit/{rev}`: changing a repo over HTTP."""

import re
from collections.abc import AsyncIterator, Sequence
from typing import Any

import msgspec

from hubgate.server.access import resource
from hubgate.server.access.actions import Action
from hubgate.server.access.caller import caller_of
from hubgate.server.access.decision import Decision
from hubgate.server.access.guard import Guard
from hubgate.server.access.identity import Identity
from hubgate.server.access.policy import decide, require
from hubgate.server.errors import Forbidden, NotFound, Unprocessable
from hubgate.server.http.render import JsonResponse
from hubgate.server.http.request import HubRequest
from hubgate.server.http.routes import MIB, Query, Route
from hubgate.server.http.surface import Surface
from hubgate.server.hub.commits.committing import commit, writable_ref
from hubgate.server.hub.commits.preupload import Answer, Candidate, answers
from hubgate.server.hub.commits.reading import Reader
from hubgate.server.hub.context import Repos
from hubgate.server.hub.discussions import store as discussions
from hubgate.server.hub.discussions.opening import commit_as_pull_request
from hubgate.server.hub.git.threads import in_thread
from hubgate.server.hub.repos import finding, store
from hubgate.server.hub.repos.model import REPO_GONE, Repo, RepoType
from hubgate.server.web.api.repos import queries
from hubgate.server.web.api.repos.old_commits import as_lines
from hubgate.server.web.repo_routes import REFUSALS, OfRepo, at_repo

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
_PULL_REQUEST = re.compile(r"refs/pr/([1-9][0-9]{0,8})\Z")
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
    async def preupload(request: HubRequest, repo: Repo) -> JsonResponse:
        rev, _ = request.param("rev"), caller_of(request).signed_in
        if not _wants_pull_request(request):
            await _judged(repos, caller_of(request).identity, repo, rev)
        asked = await request.read_json(Preupload)
        if len(asked.files) > MOST_FILES:
            raise Unprocessable(f"Ask about at most {MOST_FILES:,} files at once.")
        revision = await finding.revision(repos, repo, rev)
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

    async def commit_to(request: HubRequest, repo: Repo) -> JsonResponse:
        rev, user = request.param("rev"), caller_of(request).user
        as_pull_request = _wants_pull_request(request)
        judged = _judged_to_propose if as_pull_request else _judged
        await judged(repos, caller_of(request).identity, repo, rev)
        reader = Reader(repos.large_files.draft, repos.regular_upload_max)
        try:
            in_one_piece = request.content_type == "application/json"
            asked = await reader.read(as_lines(request) if in_one_piece else _parts(request))
            # Once more, as with a push: that may have taken hours, and a role or the repo may be gone by now.
            identity, present = (await guard.again(request)).identity, await store.by_id(repos.db, repo.id)
            if present is None:
                raise NotFound(REPO_GONE, code="RepoNotFound")
            ref = await judged(repos, identity, present, rev)
            if as_pull_request:
                made = await commit_as_pull_request(repos, repo, user, ref, asked)
            else:
                made = await commit(repos, repo, user, ref, asked)
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
    found = []
    for kind in RepoType:
        found += [
            _route(
                repos,
                kind,
                "POST",
                "/preupload/{rev:path}",
                preupload,
                "How to send files",
                query,
                Preupload,
                PreuploadAnswer,
            ),
            _route(repos, kind, "POST", "/commit/{rev:path}", commit_to, "Commit", query, None, CommitMade),
            _route(
                repos,
                kind,
                "GET",
                "/xet-write-token/{rev:path}",
                no_xet,
                "Not here: sets out what to do",
                (),
                None,
                None,
            ),
        ]
    return found


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


def _route(
    repos: Repos,
    kind: RepoType,
    method: str,
    tail: str,
    handler: OfRepo,
    summary: str,
    query: tuple[Query, ...],
    body: Any,
    shape: Any,
) -> Route:
    path = f"/api/{kind.plural}/{{namespace}}/{{repo}}{tail}"
    commits = "/commit/" in tail
    return Route(
        method,
        path,
        # Who may do it depends on where to: the handler asks.
        at_repo(repos, kind, path, Action.REPO_SEE, handler),
        Surface.API,
        Action.REPO_WRITE.rule.name,
        f"{summary}: {kind.value}",
        query=query,
        body=body,
        answers={
            **REFUSALS,
            200: ("Done.", shape),
            412: ("Somebody else was faster.", None),
            422: ("Not like this.", None),
        },
        body_cap=LARGEST_COMMIT if commits else 16 * MIB,
        body_seconds=COMMIT_SECONDS if commits else 60.0,
    )


def _wants_pull_request(request: HubRequest) -> bool:
    return queries.flag(request.query_fields(), "create_pr")


async def _judged_to_propose(repos: Repos, identity: Identity, repo: Repo, rev: str) -> str:
    """The branch that a pull request is for, if this caller may make one."""
    require(identity, Action.DISCUSSION_OPEN, repo.judged())
    if repo.discussions_disabled:
        raise Forbidden("Discussions and pull requests are turned off in this repo.")
    found = await finding.revision(repos, repo, rev)
    if found.ref is None or not found.ref.startswith("refs/heads/"):
        raise NotFound(f"Invalid rev id: {rev[:200]}", code="RevisionNotFound")
    return found.ref


async def _judged(repos: Repos, identity: Identity, repo: Repo, rev: str) -> str:
    """The ref that moves, if this caller may move it."""
    writing = decide(identity, Action.REPO_WRITE, repo.judged())
    if rev.startswith("refs/pr/"):
        await _judged_at_pull_request(repos, identity, repo, rev, writing)
    else:
        writing.enforce()
    return writable_ref(await finding.revision(repos, repo, rev))


async def _judged_at_pull_request(repos: Repos, identity: Identity, repo: Repo, rev: str, writing: Decision) -> None:
    """As with a push: while it is open, by its author or by a writer."""
    number = _PULL_REQUEST.match(rev)
    found = await discussions.find(repos.db, repo.id, int(number[1])) if number else None
    if found is None or not found.takes_commits:
        raise NotFound(f"Invalid rev id: {rev[:100]}", code="RevisionNotFound")
    if not writing.allowed:
        require(identity, Action.DISCUSSION_PUSH, resource.Post(repo.judged(), found.author_id))


async def _parts(request: HubRequest) -> AsyncIterator[bytes]:
    async for part in request.stream():
        if part:
            yield part
