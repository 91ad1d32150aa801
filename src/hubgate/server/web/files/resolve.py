"""`/{id}/resolve/{rev}/{path}` and `/raw/`: a file at a revision.

Order of the checks: the caller may see the repo, has passed the repo's gate, the revision exists, the file exists.
"""

from functools import lru_cache
from urllib.parse import quote

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import caller_of
from hubgate.server.access.identity import Identity
from hubgate.server.access.policy import decide
from hubgate.server.edge.routes import Check, Query, Route, Target
from hubgate.server.errors import NotFound
from hubgate.server.http.asgi import ASGIApp, RawHeaders
from hubgate.server.http.render import JsonResponse
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import PlainTextResponse, Response
from hubgate.server.http.surface import Surface
from hubgate.server.hub.cas.files_store import ChunkedFile
from hubgate.server.hub.context import Repos
from hubgate.server.hub.git import objects
from hubgate.server.hub.git.objects import EntryType
from hubgate.server.hub.lfs import contents
from hubgate.server.hub.repos import lookup
from hubgate.server.hub.repos.lookup import Revision
from hubgate.server.hub.repos.model import Repo, RepoType
from hubgate.server.hub.repos.revision_paths import PathAtRevision
from hubgate.server.jobs.slots import Slots
from hubgate.server.web.api.repos import queries
from hubgate.server.web.files.media_types import media_type
from hubgate.server.web.files.responses import FileSender, WholeFile, is_not_modified, is_plain_get, precondition_fails
from hubgate.server.web.files.stored_content import OF_CONTENT, ContentSender
from hubgate.server.web.repo_routes import (
    EndpointForType,
    repo_endpoint,
    repo_endpoint_with_target,
    revision_headers,
    revision_path_of,
)

# Files of a gated repo that are readable without access, at the head of a branch or tag, which only writers can change.
READABLE_BEFORE_GATE = ("README.md", "LICENSE", "LICENSE.md", "LICENSE.txt")

_CHUNKED_INFO = "application/vnd.xet-fileinfo+json"

# Headers of files with longer paths are not cached: 2,048 of them would take too much memory.
_LONGEST_CACHED_PATH = 256


def routes(repos: Repos) -> list[Route]:
    slots = Slots(64, 16, "Too many downloads at once. Try again.", max_per_repo=32)
    sender = FileSender(repos.limits.stall_seconds)
    content_sender = ContentSender(sender, repos)

    async def resolve(request: HubRequest, repo: Repo) -> ASGIApp:
        return await send(request, repo, pointers=False)

    async def raw(request: HubRequest, repo: Repo) -> ASGIApp:
        return await send(request, repo, pointers=True)

    async def find_target(request: HubRequest, repo: Repo) -> Target[Repo]:
        repo_resource = repo.as_resource()
        if repo.gated and await is_readable_before_gate(repos, repo, revision_path_of(request)):
            return Target(repo, repo_resource)
        return Target(repo, repo_resource, further_checks=((Check(Action.REPO_READ_CONTENT, repo_resource),),))

    async def send(request: HubRequest, repo: Repo, *, pointers: bool) -> ASGIApp:
        """Send a file; with `pointers`, the pointer in git instead of the large file."""
        at = revision_path_of(request)
        revision = await lookup.revision_of(repos, repo, at)
        folder = repos.folders.of(repo.id)
        entry, content = await objects.file_at(folder, revision.sha, at.path)
        if entry is None or entry.type is not EntryType.FILE:
            return _no_entry(revision.sha, at.path, at.rev)
        etag = entry.sha if pointers else entry.etag
        to_save = _is_to_save(request)
        if content is not None and (entry.pointer is None or pointers) and not to_save and is_plain_get(request):
            encode = _encoded_headers if len(at.path) <= _LONGEST_CACHED_PATH else _encoded_headers.__wrapped__
            return WholeFile(content, encode(etag, revision, at.path, len(content)))
        headers = _headers(etag, revision, at.path)
        if to_save:
            headers["content-disposition"] = disposition(at.path, "attachment")
        if precondition_fails(request.headers.get("if-match"), headers["etag"]):
            return Response(status_code=412, headers=headers)
        if is_not_modified(request.headers.get("if-none-match"), headers["etag"]):
            return Response(status_code=304, headers=headers)
        if entry.pointer is None or pointers:
            size = entry.pointer.pointer_size if entry.pointer else entry.size
            return sender.blob(request, slots, folder, entry.sha, size, content, headers)
        # Knowing a hash does not grant access: the file must have been uploaded to this repo.
        stored = await contents.find(repos, repo.id, entry.pointer.oid)
        if stored is None or stored.size != entry.pointer.size:
            return _no_entry(revision.sha, at.path, at.rev)
        if stored.chunked is not None:
            chunked = _chunked_headers(repos, repo, caller_of(request).identity, stored.chunked, revision.sha)
            headers |= chunked
            if chunked and request.method == "GET" and _CHUNKED_INFO in request.headers.get("accept", "").lower():
                return _chunked_info(stored.chunked, headers)
        return await content_sender.send(request, stored, headers)

    resolve_endpoint = repo_endpoint_with_target(
        repos, (Action.REPO_SEE, Action.REPO_READ_CONTENT), find_target, resolve
    )
    raw_endpoint = repo_endpoint(repos, Action.REPO_READ_CONTENT, raw)
    return [
        route
        for kind in RepoType
        for route in (
            _route(kind, "resolve", resolve_endpoint, "Download a file"),
            _route(kind, "raw", raw_endpoint, "Download a file as it is stored in git"),
        )
    ]


async def is_readable_before_gate(repos: Repos, repo: Repo, at: PathAtRevision) -> bool:
    if at.path not in READABLE_BEFORE_GATE:
        return False
    try:
        return await lookup.is_branch_or_tag_head(repos, repo, await lookup.revision_of(repos, repo, at))
    except NotFound:
        # The gate is checked before the revision.
        return False


def _route(kind: RepoType, verb: str, endpoint: EndpointForType, summary: str) -> Route:
    path = f"/{kind.url_prefix}{{namespace}}/{{repo}}/{verb}/{{rest:path}}"
    save = Query("download", "Browsers save the file instead of showing it.", {"type": "boolean"})
    return Route("GET", path, endpoint(kind, path), Surface.FILE, f"{summary} of a {kind.value}", query=(save,))


def _is_to_save(request: HubRequest) -> bool:
    """Whether the address asks a browser to save the file: in a link on another site, `<a download>` has no effect."""
    return b"download=" in request.scope["query_string"] and queries.flag(request.query_fields(), "download")


def _headers(etag: str, revision: Revision, path: str) -> dict[str, str]:
    return {
        **file_headers(path),
        "etag": f'"{etag}"',
        "x-repo-commit": revision.sha,
        # A file at a commit never changes, but permissions do.
        "cache-control": "no-cache",
        "vary": "Authorization, Cookie",
        **revision_headers(revision),
    }


# Cached by everything that the headers depend on.
@lru_cache(maxsize=2_048)
def _encoded_headers(etag: str, revision: Revision, path: str, size: int) -> RawHeaders:
    """The headers of a whole file that is in memory."""
    headers = {**_headers(etag, revision, path), "accept-ranges": "bytes", "content-length": str(size)}
    return [(name.encode(), value.encode()) for name, value in headers.items()]


def _chunked_headers(repos: Repos, repo: Repo, identity: Identity, file: ChunkedFile, commit: str) -> dict[str, str]:
    """Headers with which clients read a file as chunks: its Xet hash, and where to get a token. Not for the files of a
    gated repo that are readable before access is granted: their readers get no token.
    """
    if not decide(identity, Action.REPO_READ_CONTENT, repo.as_resource()).allowed:
        return {}
    token = f"{repos.base_url}/api/{repo.repo_type.plural}/{repo.full_name}/xet-read-token/{commit}"
    reconstruction = f"{repos.base_url}/xet/v1/reconstructions/{file.hash}"
    return {
        "x-xet-hash": file.hash,
        "x-xet-refresh-route": token,
        "link": f'<{token}>; rel="xet-auth", <{reconstruction}>; rel="xet-reconstruction-info"',
        "vary": "Authorization, Cookie, Accept",
    }


def _chunked_info(file: ChunkedFile, headers: dict[str, str]) -> Response:
    """The response for clients that ask how to read the file as chunks, instead of the file. Some read the headers,
    others the body, and a client that asks for nothing else fails on the content of the file.
    """
    etag = headers["etag"]
    body = {"hash": file.hash, "size": file.size, "etag": etag, "refreshUrl": headers["x-xet-refresh-route"]}
    others = {name: value for name, value in headers.items() if name not in OF_CONTENT}
    linked = {"x-linked-etag": etag, "x-linked-size": str(file.size), "cache-control": "no-store"}
    return JsonResponse(body, headers={**others, **linked, "content-type": _CHUNKED_INFO})


def _no_entry(commit: str, path: str, rev: str) -> Response:
    text = f"Entry not found: {path[:500]!r} at {rev[:100]!r}"
    shown = text.encode("ascii", "replace").decode()
    headers = {"x-error-code": "EntryNotFound", "x-error-message": shown, "x-repo-commit": commit}
    return PlainTextResponse(text + "\n", 404, headers)


def file_headers(path: str) -> dict[str, str]:
    """Headers that prevent an uploaded file from acting as a page of our origin (attacks O60, O71): browsers never
    treat it as HTML, XML or script, never sniff its type, and give it no origin.
    """
    return {
        "content-type": media_type(path),
        "content-disposition": disposition(path),
        "x-content-type-options": "nosniff",
        "content-security-policy": "default-src 'none'; sandbox",
    }


@lru_cache(maxsize=512)
def disposition(path: str, kind: str = "inline") -> str:
    """Content-Disposition in printable ASCII: the full name percent-encoded, and a plain name for old clients (RFC
    6266).
    """
    name = path.rpartition("/")[2]
    plain = "".join(
        letter if letter.isascii() and letter.isprintable() and letter not in '"\\' else "_" for letter in name
    )
    return f"{kind}; filename*=UTF-8''{quote(name, safe='', errors='replace')}; filename=\"{plain}\";"
