"""Secrets and variables of a Space. Nobody can read a secret again."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import msgspec

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import actor_of
from hubgate.server.edge.routes import KIB, Route
from hubgate.server.http.render import JsonResponse
from hubgate.server.http.request import HubRequest
from hubgate.server.hub.context import Repos
from hubgate.server.hub.repos.model import Repo
from hubgate.server.spaces import environment, settings_store
from hubgate.server.spaces.context import Spaces
from hubgate.server.spaces.environment import Kind, NewSetting
from hubgate.server.web.api.spaces.wire import SpaceSecret, SpaceVariable, secrets_of, space_route, variables_of

Handle = Callable[[HubRequest, Repo], Awaitable[JsonResponse]]


class PutSetting(msgspec.Struct):
    key: str
    value: str
    description: str | None = None

    def of_kind(self, kind: Kind) -> NewSetting:
        return NewSetting(kind, self.key, self.value, self.description or "")


class DeleteSetting(msgspec.Struct):
    key: str


def routes(repos: Repos, spaces: Spaces) -> list[Route]:
    async def show(kind: Kind, repo: Repo) -> JsonResponse:
        if kind is Kind.SECRET:
            return JsonResponse(secrets_of(await settings_store.secrets(spaces.db, repo.id)))
        return JsonResponse(variables_of(await settings_store.variables(spaces.db, repo.id)))

    async def get_all(_: HubRequest, repo: Repo, *, kind: Kind) -> JsonResponse:
        return await show(kind, repo)

    async def put(request: HubRequest, repo: Repo, *, kind: Kind) -> JsonResponse:
        body = await request.read_json(PutSetting)
        await environment.put(spaces, repo, body.of_kind(kind), actor_of(request))
        return await show(kind, repo)

    async def delete(request: HubRequest, repo: Repo, *, kind: Kind) -> JsonResponse:
        body = await request.read_json(DeleteSetting)
        await environment.remove(spaces, repo, kind, body.key, actor_of(request))
        return await show(kind, repo)

    def routes_of(kind: Kind, shape: Any) -> list[Route]:
        tail, answers = f"/{kind.value}s", {200: (f"All {kind.value}s by name.", dict[str, shape])}
        invalid = {422: ("The name or the value is invalid.", None)}

        def route(method: str, handle: Handle, summary: str, answers: Any, **more: Any) -> Route:
            return space_route(repos, method, tail, Action.REPO_CONFIGURE, handle, summary, answers, **more)

        named = kind.value
        return [
            route("GET", partial(get_all, kind=kind), f"The {named}s of a Space", answers),
            route(
                "POST",
                partial(put, kind=kind),
                f"Set a {named} of a Space",
                {**answers, **invalid},
                body=PutSetting,
                body_cap=128 * KIB,
            ),
            route(
                "DELETE",
                partial(delete, kind=kind),
                f"Delete a {named} of a Space",
                answers,
                body=DeleteSetting,
                body_cap=4 * KIB,
            ),
        ]

    return [*routes_of(Kind.SECRET, SpaceSecret), *routes_of(Kind.VARIABLE, SpaceVariable)]
