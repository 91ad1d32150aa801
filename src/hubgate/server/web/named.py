"""Addresses that carry the name of an account. A name stays with its account for good, so a former one, and one spelled
in another case, still says which account is meant: reading leads on to the present address, a change is simply made.
Programs need not care about case.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp

from hubgate.server.access import resource
from hubgate.server.access.actions import Action
from hubgate.server.access.caller import caller_of
from hubgate.server.access.policy import require
from hubgate.server.accounts import store
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.model import Organization, User
from hubgate.server.accounts.names import name_key
from hubgate.server.errors import NotFound
from hubgate.server.http.edge import NOTHING_HERE
from hubgate.server.http.request import HubRequest
from hubgate.server.http.routes import Handler, Route
from hubgate.server.http.surface import Surface

OfOrganization = Callable[[HubRequest, Organization], Awaitable[ASGIApp]]


async def user_named(accounts: Accounts, name: str) -> User:
    """By a name the user has or had; for a part of an address that says whom a change is about."""
    found = await store.account_named(accounts.db, name)
    if not isinstance(found, User):
        raise NotFound("User not found.")
    return found


def address_of(path: str, name: str) -> str:
    """Where `path`, a route's, is for the account of that name."""
    return path.replace("{name}", name)


def moved(request: HubRequest, path: str, name: str) -> Response | None:
    """Where `path`, a route's, is now; nothing if this is the place.

    307, as existing clients expect of a renamed thing.
    """
    given = request.param("name")
    same = name_key(given) == name_key(name) if path.startswith("/api/") else given == name
    if same or request.method not in ("GET", "HEAD"):
        return None
    segments = request.scope["raw_path"].decode("ascii").split("/")
    segments[path.split("/").index("{name}")] = name
    query = request.scope["query_string"].decode("latin-1")
    return RedirectResponse("/".join(segments) + (f"?{query}" if query else ""), 307)


def at_organization(accounts: Accounts, path: str, surface: Surface, handler: OfOrganization) -> Handler:
    """A handler about the organization `{name}`, found and at its present address."""

    async def handle(request: HubRequest) -> ASGIApp:
        found = await store.account_named(accounts.db, request.param("name"))
        if not isinstance(found, Organization):
            raise NotFound(NOTHING_HERE if surface is Surface.PAGE else "Organization not found.")
        return moved(request, path, found.name) or await handler(request, found)

    return handle


def organization_route(
    accounts: Accounts,
    method: str,
    path: str,
    handler: OfOrganization,
    surface: Surface,
    action: Action,
    summary: str,
    **more: Any,
) -> Route:
    """A route about the organization `{name}` that this caller may use."""

    async def judged(request: HubRequest, organization: Organization) -> ASGIApp:
        require(caller_of(request).identity, action, resource.Organization(organization.id))
        return await handler(request, organization)

    handle = at_organization(accounts, path, surface, judged)
    return Route(method, path, handle, surface, action.rule.name, summary, **more)
