"""Secrets and variables on the page of a Space's app. A stored secret is never shown."""

from functools import partial

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import actor_of
from hubgate.server.edge.routes import Route
from hubgate.server.errors import NotFound, Unprocessable
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.hub.repos.model import Repo
from hubgate.server.spaces import environment, settings_store
from hubgate.server.spaces.environment import Kind, NewSetting
from hubgate.server.web.pages.spaces.page_context import SpacePageContext


def routes(context: SpacePageContext) -> list[Route]:
    pages, spaces = context.base.pages, context.spaces

    async def put(request: HubRequest, repo: Repo, *, kind: Kind) -> Response:
        names = [f"{kind.value}_{part}" for part in ("key", "value", "description")]
        given = {name: request.form_fields.get(name) for name in names}
        key, value, description = given.values()
        key = key.strip()
        try:
            await environment.put(spaces, repo, NewSetting(kind, key, value, description.strip()), actor_of(request))
        except Unprocessable as error:
            return await context.show(request, repo, {names[0]: error.message}, **given)
        return pages.redirect(f"{repo.path}/app", f"Set {key}. The app is started again with it.")

    async def confirm(request: HubRequest, repo: Repo, *, kind: Kind) -> Response:
        key = request.param("key")
        stored = settings_store.secrets if kind is Kind.SECRET else settings_store.variables
        if key not in {each.key for each in await stored(spaces.db, repo.id)}:
            raise NotFound(f"The Space has no {kind.value} with this name.")
        return context.base.show(request, repo, "app_setting_delete.html", "app", kind=kind.value, key=key)

    async def delete(request: HubRequest, repo: Repo, *, kind: Kind) -> Response:
        key = request.param("key")
        await environment.remove(spaces, repo, kind, key, actor_of(request))
        return pages.redirect(f"{repo.path}/app", f"Deleted {key}.")

    def routes_of(kind: Kind) -> list[Route]:
        configure, at, named = Action.REPO_CONFIGURE, f"/{kind.value}s", kind.value
        one = at + "/{key}/delete"
        return [
            context.route("POST", at, configure, partial(put, kind=kind), f"Set a {named} of a Space"),
            context.route("GET", one, configure, partial(confirm, kind=kind), f"Confirm the deletion of a {named}"),
            context.route("POST", one, configure, partial(delete, kind=kind), f"Delete a {named} of a Space"),
        ]

    return [*routes_of(Kind.SECRET), *routes_of(Kind.VARIABLE)]
