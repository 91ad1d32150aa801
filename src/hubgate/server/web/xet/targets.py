"""Finds the repo of a request to the storage API by its token, and checks the permission again at every use."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

from hubgate.server.access import resource
from hubgate.server.access.actions import Action
from hubgate.server.access.caller import caller_of
from hubgate.server.edge.guard import Guard, storage_token_of
from hubgate.server.edge.routes import Endpoint, Handler, Located, Locator, Missing, Target
from hubgate.server.errors import Forbidden, NotFound
from hubgate.server.http.request import HubRequest
from hubgate.server.hub.cas.model import Sender
from hubgate.server.hub.context import Repos
from hubgate.server.hub.gating import access_requests
from hubgate.server.hub.repos import store
from hubgate.server.hub.repos.model import REPO_GONE, Repo
from hubgate.server.jobs.caller import charge_repo
from hubgate.server.web.api.repos import destinations
from hubgate.server.web.api.repos.destinations import Destination

T = TypeVar("T")

FindTarget = Callable[[HubRequest, Repo], Awaitable[Target[T]]]


def read_endpoint(repos: Repos, handler: Handler[Repo]) -> Endpoint:
    """An endpoint for tokens of either kind."""

    async def find_target(_: HubRequest, repo: Repo) -> Target[Repo]:
        return Target(repo, repo.as_resource())

    return _endpoint(repos, (Action.REPO_READ_CONTENT,), find_target, handler)


def write_endpoint(repos: Repos, handler: Handler[Destination]) -> Endpoint:
    """An endpoint for write tokens. Who may commit to the token's revision may send files for it."""

    async def find_target(request: HubRequest, repo: Repo) -> Target[Destination]:
        token = storage_token_of(request)
        if not token.may_write:
            raise Forbidden("This storage token is for downloads. Request one at the repo's xet-write-token.")
        return await destinations.find_target(repos, repo, token.rev, as_pull_request=token.as_pull_request)

    return _endpoint(repos, destinations.ACTIONS, find_target, handler)


def _endpoint(repos: Repos, actions: tuple[Action, ...], find_target: FindTarget[T], handler: Handler[T]) -> Endpoint:
    action, *further = actions
    on = tuple({kind for declared in actions for kind in declared.rule.on})

    async def find(request: HubRequest) -> Located[T] | Missing:
        repo = await store.by_id(repos.db, storage_token_of(request).repo_id)
        if repo is None:
            return Missing(resource.Repo.missing())
        charge_repo(repo.id)
        repo = await access_requests.with_access(repos, repo, caller_of(request).identity.user_id)
        return Located(repo.as_resource(), partial(find_target, request, repo))

    return Endpoint(action, Locator(on, find), handler, tuple(further))


async def sender_now(repos: Repos, guard: Guard, request: HubRequest, destination: Destination) -> Sender:
    """The sender of an upload, read again after the body was received, with the permission checked again."""
    caller = await guard.reload_storage_caller(request)
    await destinations.check_again(repos, caller.identity, destination)
    repo = await store.by_id(repos.db, destination.repo.id)
    if repo is None:
        raise NotFound(REPO_GONE, code="RepoNotFound")
    repo = await access_requests.with_access(repos, repo, caller.identity.user_id)
    return Sender(caller.identity, repo)
