"""`/operator/privileges`: token exchange and operator-defined scopes, which the operator grants to apps and revokes."""

from msgspec import Struct

from hubgate.server.access.caller import actor_of
from hubgate.server.edge.routes import Route
from hubgate.server.errors import Conflict, HubError, NotFound, Unprocessable
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.oauth.apps import management
from hubgate.server.oauth.apps import privileges as app_privileges
from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.cimd import granted_scopes
from hubgate.server.oauth.context import OAuth
from hubgate.server.oauth.exchange import issued_tokens
from hubgate.server.oauth.operator_requests.model import EXCHANGE
from hubgate.server.web.pages.listing import ListQuery
from hubgate.server.web.pages.operator.frame import OperatorPages, operator_route

_PATH = "/operator/privileges"
_TEMPLATE = "privileges.html"
_REVOKE = f"{_PATH}/revoke"


class _Privilege(Struct, frozen=True):
    """A privilege of an app: token exchange, or a scope. An app with a metadata document has neither name nor owner."""

    client_id: str
    privilege: str
    name: str = ""
    owner: str = ""

    @property
    def text(self) -> str:
        return "token exchange" if self.privilege == EXCHANGE else f"the scope {self.privilege}"


def routes(frame: OperatorPages) -> list[Route]:
    oauth = frame.oauth

    async def show_list(
        request: HubRequest, error: HubError | None = None, client_id: str = "", chosen: str = EXCHANGE
    ) -> Response:
        query = ListQuery(request.query(), _PATH)
        page_request = query.page(app_privileges.CURSOR)
        found = await app_privileges.list_privileged(oauth, page_request)
        listed = [each for app in found.items for each in await _of_app(oauth, app)]
        if page_request.after is None:
            listed += [
                _Privilege(one.client_id, scope) for one in await granted_scopes.list_all(oauth) for scope in one.scopes
            ]
        values = {
            "privileges": listed,
            "choices": [(EXCHANGE, "Token exchange"), *((scope.name, scope.name) for scope in oauth.extra_scopes)],
            "client_id": client_id,
            "chosen": chosen,
            **query.template_values(found.next_cursor),
        }
        if error is not None:
            return await frame.show_errors(request, _TEMPLATE, _PATH, error, "client_id", **values)
        return await frame.page(request, _TEMPLATE, _PATH, **values)

    async def show(request: HubRequest) -> Response:
        return await show_list(request)

    async def grant(request: HubRequest) -> Response:
        form = request.form_fields
        client_id, chosen = form.get("client_id").strip(), form.get("privilege")
        try:
            name = await _grant(request, oauth, client_id, chosen)
        except (Conflict, NotFound, Unprocessable) as error:
            return await show_list(request, error, client_id, chosen)
        return frame.pages.redirect(_PATH, f"Granted {_Privilege(client_id, chosen).text} to {name}.")

    async def confirm(request: HubRequest) -> Response:
        query = request.query()
        one = await _find(oauth, query.get("client_id", ""), query.get("privilege", ""))
        live = 0
        if one.privilege == EXCHANGE:
            live = await issued_tokens.count(oauth, await app_privileges.get(oauth, one.client_id))
        return await frame.page(request, "privilege_revoke.html", _PATH, one=one, live=live)

    async def revoke(request: HubRequest) -> Response:
        form, actor = request.form_fields, actor_of(request)
        one = await _find(oauth, form.get("client_id"), form.get("privilege"))
        if one.privilege == EXCHANGE:
            await app_privileges.set_exchange(oauth, one.client_id, False, actor)
        elif oauth.documents.is_document_url(one.client_id):
            await granted_scopes.revoke(oauth, one.client_id, one.privilege)
        else:
            await app_privileges.revoke_scope(oauth, one.client_id, one.privilege, actor)
        return frame.pages.redirect(_PATH, f"Revoked {one.text} from {one.name or one.client_id}.")

    return [
        operator_route("GET", _PATH, show, "Apps with privileges"),
        operator_route("POST", _PATH, grant, "Grant a privilege to an app"),
        operator_route("GET", _REVOKE, confirm, "The form that revokes a privilege"),
        operator_route("POST", _REVOKE, revoke, "Revoke a privilege from an app"),
    ]


async def _of_app(oauth: OAuth, app: App) -> list[_Privilege]:
    held = [*([EXCHANGE] if app.exchange.privileged else []), *app.extra_scopes]
    owner = (await management.owner_name(oauth, app)).removeprefix("@")
    return [_Privilege(app.client_id, privilege, app.name, owner) for privilege in held]


async def _of_documents(oauth: OAuth) -> list[_Privilege]:
    found = await granted_scopes.list_all(oauth)
    return [_Privilege(each.client_id, scope) for each in found for scope in each.scopes]


async def _grant(request: HubRequest, oauth: OAuth, client_id: str, chosen: str) -> str:
    """Grant the privilege and return the name of the app."""
    actor = actor_of(request)
    if oauth.documents.is_document_url(client_id):
        if chosen == EXCHANGE:
            raise Conflict("An app with a metadata document belongs to no organization, so it cannot exchange tokens.")
        return (await granted_scopes.grant(oauth, client_id, chosen)).client_id
    await app_privileges.get(oauth, client_id)
    if chosen == EXCHANGE:
        return (await app_privileges.set_exchange(oauth, client_id, True, actor)).name
    return (await app_privileges.grant_scope(oauth, client_id, chosen, actor)).name


async def _find(oauth: OAuth, client_id: str, privilege: str) -> _Privilege:
    """The privilege; NotFound if the app does not have it."""
    if oauth.documents.is_document_url(client_id):
        held = [
            _Privilege(one.client_id, scope) for one in await granted_scopes.list_all(oauth) for scope in one.scopes
        ]
    else:
        held = await _of_app(oauth, await app_privileges.get(oauth, client_id))
    found = next((one for one in held if (one.client_id, one.privilege) == (client_id, privilege)), None)
    if found is None:
        raise NotFound("This app does not have this privilege. It may have been revoked already.")
    return found
