"""Deleting the account: what is deleted, what stays, then name and password as confirmation."""

from typing import Any

from starlette.responses import Response

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import Caller, actor_of
from hubgate.server.accounts import own_deletion
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.model import Person
from hubgate.server.edge.routes import KIB, Route, own
from hubgate.server.errors import Conflict, FieldErrors, TooManyRequests
from hubgate.server.http.request import HubRequest
from hubgate.server.http.surface import Surface
from hubgate.server.hub.repos import store as repo_store
from hubgate.server.web import session_cookie
from hubgate.server.web.pages.settings.profile import PATH as _PROFILE
from hubgate.server.web.rendering import Pages

PATH = "/settings/delete"
_TEMPLATE = "settings/delete.html"
_ACTION = Action.ACCOUNT_CREDENTIALS


def routes(pages: Pages, accounts: Accounts) -> list[Route]:
    async def consequences(person: Person) -> dict[str, Any]:
        return {
            "section": _PROFILE,
            "going": await own_deletion.consequences(accounts, person),
            "repos": await repo_store.count_of_owner(accounts.db, person.user.id),
        }

    async def ask(request: HubRequest, caller: Caller) -> Response:
        return pages.page(request, _TEMPLATE, typed="", **await consequences(caller.signed_in))

    async def delete(request: HubRequest, caller: Caller) -> Response:
        person, form = caller.signed_in, request.form_fields
        typed, actor = form.get("name"), actor_of(request)
        try:
            await own_deletion.delete_own(accounts, person.user, typed, form.get("password"), actor)
        except (FieldErrors, TooManyRequests) as error:
            return pages.show_errors(request, _TEMPLATE, error, "password", typed=typed, **await consequences(person))
        except Conflict as error:
            return pages.page(request, _TEMPLATE, error.status, typed=typed, **await consequences(person))
        response = pages.redirect("/", "Your account is deleted.")
        session_cookie.forget(response, pages.settings)
        return response

    page = Surface.PAGE
    return [
        Route("GET", PATH, own(_ACTION, ask), page, "What deleting your account means"),
        Route("POST", PATH, own(_ACTION, delete), page, "Delete your account", body_cap=16 * KIB),
    ]
