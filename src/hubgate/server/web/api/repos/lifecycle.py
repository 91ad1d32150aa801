"""Creating, deleting and moving repos: `/api/repos/create`, `/api/repos/delete`, `/api/repos/move`."""

import base64
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

import msgspec

from hubgate.server.access import resource
from hubgate.server.access.actions import Action
from hubgate.server.access.caller import Caller, actor_of, caller_of
from hubgate.server.access.resource import Account, Organization
from hubgate.server.edge.routes import MIB, Endpoint, Locator, Missing, Route, Target
from hubgate.server.errors import BadRequest, NotFound, Unprocessable
from hubgate.server.http.render import JsonResponse
from hubgate.server.http.request import HubRequest
from hubgate.server.http.surface import Surface
from hubgate.server.hub.context import Repos
from hubgate.server.hub.git.paths import check_path
from hubgate.server.hub.repos import creation, deletion, lookup, transfer
from hubgate.server.hub.repos.model import Repo, RepoOwner, RepoType
from hubgate.server.spaces import environment, management
from hubgate.server.spaces.context import Spaces
from hubgate.server.spaces.environment import Kind
from hubgate.server.spaces.model import HARDWARE, MAX_KEYS, check_sleep_seconds
from hubgate.server.storage.database import Tx
from hubgate.server.web.api.answers import NO_TOKEN
from hubgate.server.web.api.repos.wire import Visibility, requested_privacy
from hubgate.server.web.api.spaces.settings import PutSetting
from hubgate.server.web.repo_targets import RepoMove, move_target, namespace_owner

T = TypeVar("T")

_TYPES = Literal["model", "dataset", "space"]
MAX_FILES = 100


class NewFile(msgspec.Struct):
    path: str
    content: str
    encoding: Literal["utf-8", "base64"] = "utf-8"


class CreateRepo(msgspec.Struct, rename="camel"):
    """A new repo. The last fields are those of a Space."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    organization: str | None = None
    type: _TYPES | None = None
    visibility: Visibility | None = None
    private: bool | None = None
    license: Annotated[str, msgspec.Meta(max_length=100, pattern=r"^[\w.+-]*$")] | None = None
    files: Annotated[list[NewFile], msgspec.Meta(max_length=MAX_FILES)] | None = None
    sdk: Annotated[str, msgspec.Meta(max_length=40, pattern=r"^[\w.-]*$")] | None = None
    hardware: str | None = None
    sleep_time_seconds: int | None = None
    secrets: Annotated[list[PutSetting], msgspec.Meta(max_length=MAX_KEYS)] | None = None
    variables: Annotated[list[PutSetting], msgspec.Meta(max_length=MAX_KEYS)] | None = None


class RepoCreated(msgspec.Struct):
    url: str
    name: str
    id: str


class DeleteRepo(msgspec.Struct):
    name: str
    organization: str | None = None
    type: _TYPES | None = None


class MoveRepo(msgspec.Struct, rename="camel"):
    from_repo: str
    to_repo: str
    type: _TYPES | None = None
    # Whether to redirect the old name to another namespace; only for admins of the old namespace.
    leave_redirect: bool | None = None


class RepoMoved(msgspec.Struct):
    url: str
    # Whether the old name redirects to the new one.
    redirect: bool


class _Creation(NamedTuple):
    body: CreateRepo
    owner: RepoOwner
    name: str


class _Deletion(NamedTuple):
    repo: Repo
    requested_name: str


def routes(repos: Repos, spaces: Spaces) -> list[Route]:
    async def repo_to_create(request: HubRequest) -> Target[_Creation]:
        body = await read_signed_in(request, CreateRepo)
        namespace, name = _namespace_and_name(caller_of(request), body.organization, body.name)
        owner = await namespace_owner(repos, namespace)
        return Target(_Creation(body, owner, name), owner.namespace)

    async def create(request: HubRequest, new: _Creation) -> JsonResponse:
        caller, body = caller_of(request), new.body
        new_repo = creation.NewRepo(
            type=RepoType(body.type or "model"),
            name=new.name,
            private=requested_privacy(RepoType(body.type or "model"), body.private, body.visibility) or False,
            sdk=body.sdk or "",
            license=body.license or "",
            client_id=caller.identity.client_id,
        )
        if new_repo.type is RepoType.SPACE and not new_repo.sdk:
            raise BadRequest("A space must have an sdk, such as python, gradio, docker or static.")
        files, on_created = _files(body.files or []), _space_settings(spaces, body)
        try:
            repo = await creation.create(repos, caller.user, new.owner, new_repo, actor_of(request), files, on_created)
        except creation.NameTaken as taken:
            # Clients that accept an existing repo read its address from here.
            answer = {"error": taken.message, "url": repos.base_url + taken.path}
            return JsonResponse(answer, 409, {"x-error-message": taken.message})
        return JsonResponse(RepoCreated(repos.base_url + repo.path, repo.full_name, repo.id))

    async def repo_to_delete(request: HubRequest) -> Target[_Deletion] | Missing:
        body = await read_signed_in(request, DeleteRepo)
        namespace, name = _namespace_and_name(caller_of(request), body.organization, body.name)
        repo = await lookup.find_repo(repos, body.type or "model", namespace, name)
        if not isinstance(repo, Repo):
            return Missing(repo)
        return Target(_Deletion(repo, f"{namespace}/{name}"), repo.as_resource())

    async def delete(request: HubRequest, requested: _Deletion) -> JsonResponse:
        repo = requested.repo
        if repo.full_name.lower() != requested.requested_name.lower():
            # A script that cleans up under an old name, of the repo or of its owner, must not delete the renamed repo.
            raise NotFound(f"Repository not found. It is called {repo.full_name} now.", code="RepoNotFound")
        await deletion.delete(repos, repo, actor_of(request))
        return JsonResponse({})

    async def repo_to_move(request: HubRequest) -> Target[RepoMove] | Missing:
        body = await read_signed_in(request, MoveRepo)
        # Both names are parsed before the lookup: an error about the destination must not reveal that the repo exists.
        source, destination = _split(body.from_repo), _split(body.to_repo)
        repo = await lookup.find_repo(repos, body.type or "model", *source)
        if not isinstance(repo, Repo):
            return Missing(repo)
        return await move_target(repos, caller_of(request).identity, repo, *destination, body.leave_redirect)

    async def move(request: HubRequest, requested: RepoMove) -> JsonResponse:
        leave = requested.leave_redirect
        moved = await transfer.move(
            repos, requested.repo, requested.new_owner, requested.name, actor_of(request), leave_redirect=leave
        )
        return JsonResponse(RepoMoved(repos.base_url + moved.path, requested.redirects))

    create_endpoint = Endpoint(Action.REPO_CREATE, Locator((Account, Organization), repo_to_create), create)
    delete_endpoint = Endpoint(Action.REPO_MANAGE, Locator((resource.Repo,), repo_to_delete), delete)
    move_resources = (resource.Repo, Account, Organization)
    move_actions = (Action.REPO_CREATE, Action.REPO_LEAVE_REDIRECT)
    move_endpoint = Endpoint(Action.REPO_MANAGE, Locator(move_resources, repo_to_move), move, move_actions)
    created = {
        200: ("The repo exists, with its first commit.", RepoCreated),
        409: ("The name is taken; url is the address of the repo that has it.", None),
    }
    return [
        _route("POST", "/api/repos/create", create_endpoint, "Create a repo", CreateRepo, created, 16 * MIB),
        _route("DELETE", "/api/repos/delete", delete_endpoint, "Delete a repo", DeleteRepo, _DELETED),
        _route("POST", "/api/repos/move", move_endpoint, "Rename a repo or move it to another owner", MoveRepo, _MOVED),
    ]


_DELETED = {200: ("The repo is deleted.", None), 404: ("Repo not found.", None)}
_MOVED = {
    200: ("The repo is moved. redirect says whether its old name redirects to it.", RepoMoved),
    409: ("The name is taken by a repo or a redirect.", None),
}


def _route(method: str, path: str, endpoint: Endpoint, summary: str, body: Any, answers: Any, cap: int = MIB) -> Route:
    responses = {**NO_TOKEN, 403: ("Not permitted in this namespace.", None), **answers}
    return Route(method, path, endpoint, Surface.API, summary, body=body, answers=responses, body_cap=cap)


def _namespace_and_name(caller: Caller, organization: str | None, name: str) -> tuple[str, str]:
    """Return the namespace and the repo's name. Some clients send both in `name`, others send the caller's name as the
    organization.
    """
    namespace, _, rest = name.rpartition("/")
    if organization and namespace and organization.lower() != namespace.lower():
        raise Unprocessable("name and organization contain different namespaces.")
    return organization or namespace or caller.user.name, rest


async def read_signed_in(request: HubRequest, shape: type[T]) -> T:
    """Read the body of a signed-in caller: a missing token is reported before any other error."""
    _ = caller_of(request).signed_in_person
    return await request.read_json(shape)


def _split(repo: str) -> tuple[str, str]:
    namespace, slash, name = repo.partition("/")
    if not slash or not namespace or not name:
        raise Unprocessable(f"Write the repo as namespace/name, not {repo[:120]!r}.")
    return namespace, name


def _space_settings(spaces: Spaces, body: CreateRepo) -> creation.OnCreated:
    """Parse the settings of a new Space; the result stores them."""
    settings = [
        *(each.of_kind(Kind.SECRET) for each in body.secrets or ()),
        *(each.of_kind(Kind.VARIABLE) for each in body.variables or ()),
    ]
    sleep_seconds = None
    if spaces.is_on:
        # Elsewhere nothing runs, on any hardware.
        management.check_hardware(body.hardware or HARDWARE)
        sleep_seconds = None if body.sleep_time_seconds is None else check_sleep_seconds(body.sleep_time_seconds)

    async def store_settings(tx: Tx, repo: Repo) -> None:
        if repo.repo_type is RepoType.SPACE:
            await environment.put_first(tx, spaces, repo, settings, sleep_seconds)

    return store_settings


def _files(files: list[NewFile]) -> dict[str, bytes]:
    content = {}
    for file in files:
        try:
            given = file.content.encode() if file.encoding == "utf-8" else base64.b64decode(file.content, validate=True)
        except ValueError:
            raise Unprocessable(f"The content of {file.path[:120]!r} is not {file.encoding}.") from None
        content[check_path(file.path)] = given
    return content
