"""`/api/settings/applications`: the caller's apps and, under `/api/organizations/{name}`, those of an organization."""

from typing import Any

from msgspec import UNSET, to_builtins
from msgspec.structs import replace

from hubgate.server.accounts.context import Accounts
from hubgate.server.edge.routes import KIB, Handler, Route
from hubgate.server.errors import Unprocessable
from hubgate.server.http.render import JsonResponse
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.http.surface import Surface
from hubgate.server.oauth.apps import management
from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.context import OAuth
from hubgate.server.web.api import application_shapes as shapes
from hubgate.server.web.api.answers import NO_TOKEN
from hubgate.server.web.owner_routes import APPLICATIONS, OwnerContext

_ONE, _SECRET = "/{client_id}", "/{client_id}/secret"
_REFUSALS = {
    **NO_TOKEN,
    403: ("The token is read-only or belongs to an app, or you are not an admin of the organization.", None),
}
_NOT_FOUND = {**_REFUSALS, 404: ("App not found, or it is not yours.", None)}
_INVALID = {422: ("A field is unknown or invalid; error says which.", None)}


def routes(oauth: OAuth, accounts: Accounts) -> list[Route]:
    return [*_routes(_Applications(oauth), None), *_routes(_Applications(oauth), accounts)]


class _Applications:
    def __init__(self, oauth: OAuth) -> None:
        self._oauth = oauth

    async def list_all(self, _: HubRequest, context: OwnerContext) -> Response:
        found = await management.of_owner(self._oauth, context.owner)
        return JsonResponse([shapes.describe(app, context.organization) for app in found])

    async def get_one(self, request: HubRequest, context: OwnerContext) -> Response:
        return JsonResponse(shapes.describe(await self._app(request, context), context.organization))

    async def create(self, request: HubRequest, context: OwnerContext) -> Response:
        given = await request.read_json(shapes.NewOrganizationApp if context.organization else shapes.NewApp)
        draft = shapes.apply_changes(shapes.EMPTY_APP, given)
        draft = replace(draft, confidential=given.confidential)
        app, secret = await management.create(self._oauth, context.owner, draft, context.actor)
        return JsonResponse(_with_secret(app, context, secret), 201)

    async def change(self, request: HubRequest, context: OwnerContext) -> Response:
        given = await request.read_json(shapes.OrganizationAppChanges if context.organization else shapes.AppChanges)
        app = await self._app(request, context)
        _reject_read_only(given, app, context)
        changed = await management.update(
            self._oauth, app, lambda latest: shapes.apply_changes(latest, given), context.actor
        )
        return JsonResponse(shapes.describe(changed, context.organization))

    async def delete(self, request: HubRequest, context: OwnerContext) -> Response:
        await management.delete(self._oauth, await self._app(request, context), context.actor)
        return Response(status_code=204)

    async def refresh_secret(self, request: HubRequest, context: OwnerContext) -> Response:
        overlap = (await request.read_json(shapes.NewSecret)).overlap_seconds if await request.body() else 0
        app = await self._app(request, context)
        secret = await management.refresh_secret(self._oauth, app, overlap, context.actor)
        return JsonResponse(_with_secret(await self._app(request, context), context, secret))

    async def delete_secret(self, request: HubRequest, context: OwnerContext) -> Response:
        app = await management.delete_secret(self._oauth, await self._app(request, context), context.actor)
        return JsonResponse(shapes.describe(app, context.organization))

    async def _app(self, request: HubRequest, context: OwnerContext) -> App:
        return await management.get(self._oauth, context.owner, request.param("client_id"))


def _with_secret(app: App, context: OwnerContext, secret: str | None) -> shapes.RegisteredApp:
    described = shapes.describe(app, context.organization)
    described.client_secret = UNSET if secret is None else secret
    return described


def _reject_read_only(given: shapes.AppChanges, app: App, context: OwnerContext) -> None:
    """Reject changes of read-only fields; their current values are accepted."""
    sent = to_builtins(given)
    current: dict[str, Any] = to_builtins(shapes.describe(app, context.organization))
    for name in shapes.READ_ONLY:
        if name in sent and sent[name] != current[name]:
            raise Unprocessable(f"{name} is read-only.{shapes.READ_ONLY[name]}")


def _routes(applications: _Applications, accounts: Accounts | None) -> list[Route]:
    whose = "your" if accounts is None else "an organization's"
    for_organization = "" if accounts is None else " of an organization"
    app: Any = shapes.RegisteredApp if accounts is None else shapes.RegisteredOrganizationApp
    new: Any = shapes.NewApp if accounts is None else shapes.NewOrganizationApp
    changes: Any = shapes.AppChanges if accounts is None else shapes.OrganizationAppChanges

    def route(
        method: str, path: str, handler: Handler[OwnerContext], summary: str, answers: dict[int, Any], **more: Any
    ) -> Route:
        more |= {"answers": answers, "body_cap": 256 * KIB}
        return APPLICATIONS.route(accounts, method, path, handler, Surface.API, summary, **more)

    shown = {200: ("The app.", app), **_NOT_FOUND}
    created = {
        201: ("The app with its secret, if it has one. The secret is only in this response.", app),
        **_REFUSALS,
        **_INVALID,
    }
    refreshed = {200: ("The app with its new secret, which is only in this response.", app), **_NOT_FOUND, **_INVALID}
    return [
        route(
            "GET",
            "",
            applications.list_all,
            f"List {whose} apps",
            {200: ("Oldest first.", list[app]), **_REFUSALS},
        ),
        route("POST", "", applications.create, f"Register an app{for_organization}", created, body=new),
        route("GET", _ONE, applications.get_one, f"One of {whose} apps", shown),
        route("PATCH", _ONE, applications.change, f"Change one of {whose} apps", {**shown, **_INVALID}, body=changes),
        route(
            "DELETE",
            _ONE,
            applications.delete,
            f"Delete one of {whose} apps",
            {204: ("Deleted, with all its consents and tokens.", None), **_NOT_FOUND},
        ),
        route(
            "POST",
            _SECRET,
            applications.refresh_secret,
            f"A new secret for one of {whose} apps",
            refreshed,
            body=shapes.NewSecret,
        ),
        route(
            "DELETE",
            _SECRET,
            applications.delete_secret,
            f"Delete the secret of one of {whose} apps",
            {200: ("The app, without a secret.", app), **_NOT_FOUND},
        ),
    ]
