"""Addresses that contain the name of an account. A former name stays reserved for its account (accounts/renames.py), so
a former name, or a name in another case, still identifies the account: reads are redirected to the current address,
changes are applied directly. API paths ignore case.
"""

from collections.abc import Callable
from typing import Any

from hubgate.server.access import resource
from hubgate.server.access.actions import Action
from hubgate.server.accounts import store
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.model import Organization, User
from hubgate.server.accounts.names import name_key
from hubgate.server.edge.edge import NOTHING_HERE
from hubgate.server.edge.routes import Check, Endpoint, Handler, Locator, Route, Target
from hubgate.server.errors import NotFound
from hubgate.server.http.request import HubRequest
from hubgate.server.http.surface import Surface


async def user_named(accounts: Accounts, name: str) -> User:
    """Find a user by current or former name, for path segments that identify the user to be changed."""
    found = await store.account_named(accounts.db, name)
    if not isinstance(found, User):
        raise NotFound("User not found.")
    return found


def address_of(path: str, name: str) -> str:
    """Return the route path `path` with the account's name filled in."""
    return path.replace("{name}", name)


def moved_to(request: HubRequest, path: str, name: str) -> str:
    """Return the current address for the route path `path`, or "" if the request already uses it."""
    requested = request.param("name")
    if name_key(requested) == name_key(name) if path.startswith("/api/") else requested == name:
        return ""
    segments = request.scope["raw_path"].decode("ascii").split("/")
    segments[path.split("/").index("{name}")] = name
    query = request.scope["query_string"].decode("latin-1")
    return "/".join(segments) + (f"?{query}" if query else "")


async def organization_named(accounts: Accounts, request: HubRequest, surface: Surface) -> Organization:
    found = await store.account_named(accounts.db, request.param("name"))
    if not isinstance(found, Organization):
        raise NotFound(NOTHING_HERE if surface is Surface.PAGE else "Organization not found.")
    return found


# Returns the checks in addition to the route's action. In each group, one check must pass.
FurtherChecks = Callable[[HubRequest, Organization], tuple[tuple[Check, ...], ...]]


def organization_locator(
    accounts: Accounts, path: str, surface: Surface, further_checks: FurtherChecks | None = None
) -> Locator[Organization]:
    """Locate the organization `{name}` of the route's path."""

    async def find(request: HubRequest) -> Target[Organization]:
        found = await organization_named(accounts, request, surface)
        return Target(
            found,
            resource.Organization(found.id),
            further_checks=further_checks(request, found) if further_checks else (),
            moved_to=moved_to(request, path, found.name),
        )

    return Locator((resource.Organization,), find)


def organization_route(
    accounts: Accounts,
    method: str,
    path: str,
    handler: Handler[Organization],
    surface: Surface,
    action: Action,
    summary: str,
    **more: Any,
) -> Route:
    """Create a route for the organization `{name}`."""
    return Route(
        method, path, Endpoint(action, organization_locator(accounts, path, surface), handler), surface, summary, **more
    )
