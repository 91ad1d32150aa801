"""Creating an organization."""

from starlette.responses import Response

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import Caller, actor_of
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.organizations import settings
from hubgate.server.edge.routes import KIB, Route, own
from hubgate.server.errors import FieldErrors
from hubgate.server.http.request import HubRequest
from hubgate.server.http.surface import Surface
from hubgate.server.web.named import address_of
from hubgate.server.web.pages.organizations.members import PATH as MEMBERS
from hubgate.server.web.rendering import Pages

_PATH = "/organizations/new"
_ACTION = Action.ACCOUNT_WRITE_SETTINGS


def routes(pages: Pages, accounts: Accounts) -> list[Route]:
    async def ask(request: HubRequest, _: Caller) -> Response:
        return pages.page(request, "organization/new.html", name="", fullname="")

    async def found(request: HubRequest, caller: Caller) -> Response:
        owner, given = caller.user, request.form_fields
        name, fullname = given.get("name").strip(), given.get("fullname")
        try:
            organization = await settings.create(accounts, owner, name, fullname, actor_of(request))
        except FieldErrors as error:
            return pages.page(request, "organization/new.html", errors=error.fields, name=name, fullname=fullname)
        return pages.redirect(address_of(MEMBERS, organization.name), f"Created {organization.name}.")

    return [
        Route("GET", _PATH, own(_ACTION, ask), Surface.PAGE, "Found an organization"),
        Route("POST", _PATH, own(_ACTION, found), Surface.PAGE, "Found an organization", body_cap=16 * KIB),
    ]
