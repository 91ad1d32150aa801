"""`/oauth/explain/{id}`: an app's refused request, compared with its registration. Only for the app's owner."""

from hubgate.server.access import resource
from hubgate.server.access.actions import Action
from hubgate.server.access.caller import Caller, caller_of
from hubgate.server.access.policy import decide
from hubgate.server.accounts import store as account_store
from hubgate.server.edge.routes import Route, public
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.http.surface import Surface
from hubgate.server.oauth.apps import store as app_store
from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.context import OAuth
from hubgate.server.oauth.explain.comparison import compare
from hubgate.server.web.owner_routes import APPLICATIONS
from hubgate.server.web.rendering import Pages

PATH = "/oauth/explain/{id}"


def routes(pages: Pages, oauth: OAuth) -> list[Route]:
    async def show(request: HubRequest) -> Response:
        refusal = await oauth.refusals.find(request.param("id"))
        app = await app_store.find(oauth.db, refusal.client_id) if refusal else None
        if refusal is None or app is None or not _may_see(caller_of(request), app):
            # The same page for an unknown id, an expired id and the id of another owner's app.
            return pages.page(request, "oauth/not_explained.html", 403)
        return pages.page(
            request,
            "oauth/explain.html",
            refusal=refusal,
            app=app,
            lines=compare(refusal, app),
            edit=f"{await _app_list_path(app)}/{app.client_id}",
        )

    async def _app_list_path(app: App) -> str:
        if app.org_id is None:
            return APPLICATIONS.path
        organization = await account_store.organization(oauth.db, app.org_id)
        return f"/organizations/{organization.name if organization else ''}{APPLICATIONS.path}"

    return [Route("GET", PATH, public(show), Surface.PAGE, "Why a request of an app was refused")]


def _may_see(caller: Caller, app: App) -> bool:
    if app.org_id is not None:
        return decide(caller.identity, Action.ORG_READ_APPS, resource.Organization(app.org_id)).allowed
    return decide(caller.identity, Action.ACCOUNT_READ_SETTINGS, resource.Account(app.owner_id or "")).allowed
