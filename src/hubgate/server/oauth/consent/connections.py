"""Connected apps: a user lists, changes and revokes consents. Live tokens are affected from the next request on."""

from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct, field

from hubgate.server.accounts.account_locks import lock_credentials
from hubgate.server.accounts.model import Person
from hubgate.server.errors import FieldErrors, NotFound
from hubgate.server.ids import AFTER_ALL
from hubgate.server.oauth.consent import store
from hubgate.server.oauth.consent.approval import update_approvals
from hubgate.server.oauth.consent.model import AppConnection
from hubgate.server.oauth.context import OAuth
from hubgate.server.oauth.resource_names import uri_of
from hubgate.server.paging import Page, PageRequest, page_of
from hubgate.server.scopes import IDENTITY_SCOPES, SCOPE_NAMES
from hubgate.server.storage.database import Tx

CURSOR = (str,)
_NOT_FOUND = "You have not approved this app."


async def of_user(oauth: OAuth, user_id: str) -> Sequence[AppConnection]:
    return await oauth.db.read_long(lambda tx: store.of_user(tx, user_id))


async def page_of_user(oauth: OAuth, user_id: str, page_request: PageRequest) -> Page[AppConnection]:
    """A page of the user's connected apps, newest first."""
    before = page_request.last_shown(AFTER_ALL)
    found = await oauth.db.read_long(lambda tx: store.page_of_user(tx, user_id, before, page_request.fetch_limit))
    return page_of(found, page_request, lambda connected: (connected.consent.id,))


async def get(oauth: OAuth, user_id: str, client_id: str) -> AppConnection:
    found = await oauth.db.read(lambda tx: store.find_connection(tx, user_id, client_id))
    if found is None:
        raise NotFound(_NOT_FOUND)
    return found


class Changes(Struct, frozen=True):
    """Changes to a consent; None leaves a value unchanged.

    `in_organizations` has the scopes of individual organizations; a new organization that is not in it gets all scopes
    of the consent. `other_scopes` are for all other servers, `resource_scopes` for individual ones, by URI. Both can
    only be reduced here: adding needs a consent page that names the server.
    """

    scopes: Collection[str] | None = None
    organizations: Collection[str] | None = None
    in_organizations: Mapping[str, Collection[str]] = field(default_factory=dict)
    other_scopes: Collection[str] | None = None
    resource_scopes: Mapping[str, Collection[str]] = field(default_factory=dict)

    def scopes_after(self, connected: AppConnection) -> frozenset[str]:
        return connected.consent.scopes if self.scopes is None else frozenset(self.scopes)

    def resource_scopes_after(self, connected: AppConnection) -> dict[str, frozenset[str]]:
        """The scopes of each other server after the changes. A scope revoked on this hub is revoked for them, too."""
        revoked = connected.consent.scopes - self.scopes_after(connected)
        after = {}
        for name, before in connected.consent.resource_scopes.items():
            left = before - revoked
            if self.other_scopes is not None:
                left = left.intersection(self.other_scopes)
            after[name] = left.intersection(self.resource_scopes.get(uri_of(name), left))
        return after

    def organizations_after(self, connected: AppConnection) -> dict[str, frozenset[str]]:
        """The scopes of each organization after the changes. A scope revoked from the app is revoked in all of them."""
        before, allowed = connected.consent.organizations, self.scopes_after(connected) - IDENTITY_SCOPES
        org_ids = {*(before if self.organizations is None else self.organizations), *self.in_organizations}
        return {
            org_id: allowed.intersection(self.in_organizations.get(org_id, before.get(org_id, allowed)))
            for org_id in org_ids
        }


async def change(oauth: OAuth, person: Person, client_id: str, changes: Changes) -> AppConnection:
    """Apply changes. Live tokens stay limited to the scopes they were issued with."""
    now, user_id = oauth.clock(), person.user.id

    async def unit(tx: Tx) -> AppConnection:
        # A change may add access, so the user must still be signed in (attack O68).
        await lock_credentials(tx, user_id, person.user.credentials_version)
        # The consent is locked before it is read, so that concurrent changes to other values are not lost.
        locked = await store.lock_for_change(tx, user_id, client_id, now)
        before = await store.find_connection(tx, user_id, client_id) if locked else None
        if before is None:
            raise NotFound(_NOT_FOUND)
        _check(before, person, changes)
        scopes, on_others = changes.scopes_after(before), changes.resource_scopes_after(before)
        await store.set_scopes(tx, before.consent.id, scopes, on_others)
        await store.set_organizations(tx, before.consent.id, changes.organizations_after(before))
        revoked = {name: granted - on_others[name] for name, granted in before.consent.resource_scopes.items()}
        await update_approvals(tx, before.consent.id, scopes, revoked)
        after = await store.find_connection(tx, user_id, client_id)
        if after is None:
            raise NotFound(_NOT_FOUND)
        return after

    return await oauth.db.write(unit)


def _check(connected: AppConnection, person: Person, changes: Changes) -> None:
    errors = {}
    allowed = connected.allowable_scopes | (SCOPE_NAMES if connected.has_document else set())
    if unknown := _outside(allowed, changes.scopes or ()):
        errors["scopes"] = f"{unknown[0][:60]} is not among the scopes of this app."
    if unknown := _outside(connected.consent.other_scopes, changes.other_scopes or ()):
        errors["resourceScopes"] = f"{unknown[0][:60]} is not allowed for other servers. The app has to request it."
    named = frozenset(connected.consent.other_resources)
    for uri, names in changes.resource_scopes.items():
        if uri not in named:
            errors["scopesByResource"] = f"The app has no access to {uri[:200]}. See resources for what it has."
        elif unknown := _outside(connected.consent.scopes_on(uri), names):
            text = f"{unknown[0][:60]} is not allowed for {uri[:200]}. The app has to request it."
            errors["scopesByResource"] = text
    if any(org_id not in person.roles for org_id in (*(changes.organizations or ()), *changes.in_organizations)):
        errors["organizations"] = "You can grant access only to organizations you are a member of."
    everywhere = changes.scopes_after(connected)
    chosen = [name for scopes in changes.in_organizations.values() for name in scopes]
    if unknown := _outside(everywhere, chosen):
        errors.setdefault(
            "organizations", f"The app does not have {unknown[0][:60]}, so it cannot have it in an organization."
        )
    if errors:
        raise FieldErrors(errors)


def _outside(allowed: Collection[str], names: Collection[str]) -> list[str]:
    return [name for name in names if name not in allowed]


async def count_tokens(oauth: OAuth, connected: AppConnection) -> int:
    now = oauth.clock()
    return await oauth.db.read(lambda tx: store.count_tokens(tx, connected.consent.id, now))


async def revoke(oauth: OAuth, user_id: str, client_id: str) -> None:
    """Delete the consent; its codes and tokens cascade."""
    if not await oauth.db.write(lambda tx: store.remove(tx, user_id, client_id)):
        raise NotFound(_NOT_FOUND)
