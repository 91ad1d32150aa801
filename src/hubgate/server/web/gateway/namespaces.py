"""The namespace of a forwarded request: the account that it is charged to, and that permissions are checked on."""

from hubgate.server.access import resource
from hubgate.server.access.caller import caller_of
from hubgate.server.accounts import store
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.model import Organization, User
from hubgate.server.edge.routes import Locator, Target
from hubgate.server.errors import BadRequest, NotFound
from hubgate.server.http.request import HubRequest
from hubgate.server.web.account_paths import moved_to

Namespace = User | Organization

# Existing clients name the organization that pays in this header.
BILL_TO = "x-hf-bill-to"


def as_resource(namespace: Namespace) -> resource.Namespace:
    kind = resource.Organization if isinstance(namespace, Organization) else resource.Account
    return kind(namespace.id)


def namespace_in_path(accounts: Accounts, path: str) -> Locator[Namespace]:
    """Locate the account `{name}` of the route's path."""

    async def find(request: HubRequest) -> Target[Namespace]:
        found = await _account_named(accounts, request.param("name"))
        return Target(found, as_resource(found), moved_to=moved_to(request, path, found.name))

    return Locator((resource.Account, resource.Organization), find)


def namespace_in_header(accounts: Accounts) -> Locator[Namespace]:
    """Locate the account that the BILL_TO header names; without the header, the caller's own account."""

    async def find(request: HubRequest) -> Target[Namespace]:
        names = request.headers.getlist(BILL_TO)
        if len(names) > 1:
            raise BadRequest(f"The {BILL_TO} header was sent more than once.")
        found = await _account_named(accounts, names[0]) if names else caller_of(request).user
        return Target(found, as_resource(found))

    return Locator((resource.Account, resource.Organization), find)


async def _account_named(accounts: Accounts, name: str) -> Namespace:
    found = await store.account_named(accounts.db, name)
    if found is None:
        raise NotFound("No user or organization has this name.")
    return found
