"""Connected apps: what a user allowed, looked at, changed and taken back. Live tokens follow at the next request."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from hubgate.server.accounts.model import Person
from hubgate.server.errors import FieldErrors, NotFound
from hubgate.server.ids import AFTER_ALL
from hubgate.server.oauth.approvals.remembering import follow_change
from hubgate.server.oauth.consent import store
from hubgate.server.oauth.consent.model import IDENTITY, Connected
from hubgate.server.oauth.context import OAuth
from hubgate.server.paging import Page, PageRequest, page_of
from hubgate.server.scopes import NAMES
from hubgate.server.storage.database import Tx

CURSOR = (str,)
_ABSENT = "You have not allowed such an app."


async def of_user(oauth: OAuth, user_id: str) -> Sequence[Connected]:
    return await oauth.db.read_long(lambda tx: store.of_user(tx, user_id))


async def page_of_user(oauth: OAuth, user_id: str, asked: PageRequest) -> Page[Connected]:
    """The newest first."""
    before = asked.last_shown(AFTER_ALL)
    found = await oauth.db.read_long(lambda tx: store.page_of_user(tx, user_id, before, asked.fetch))
    return page_of(found, asked, lambda connected: (connected.consent.id,))


async def get(oauth: OAuth, user_id: str, client_id: str) -> Connected:
    found = await oauth.db.read(lambda tx: store.connected(tx, user_id, client_id))
    if found is None:
        raise NotFound(_ABSENT)
    return found


@dataclass(frozen=True)
class Changes:
    """What is None stays as it is. `in_organizations` names the scopes of single organizations; one that is new and not
    named there gets all that the consent holds.
    """

    scopes: Collection[str] | None = None
    organizations: Collection[str] | None = None
    in_organizations: Mapping[str, Collection[str]] = field(default_factory=dict)

    def scopes_after(self, connected: Connected) -> frozenset[str]:
        return connected.consent.scopes if self.scopes is None else frozenset(self.scopes)

    def organizations_after(self, connected: Connected) -> dict[str, frozenset[str]]:
        """No organization keeps a scope that is taken from the app altogether."""
        before, allowed = connected.consent.organizations, self.scopes_after(connected) - IDENTITY
        reached = {*(before if self.organizations is None else self.organizations), *self.in_organizations}
        return {
            org_id: allowed.intersection(self.in_organizations.get(org_id, before.get(org_id, allowed)))
            for org_id in reached
        }


async def change(oauth: OAuth, person: Person, client_id: str, changes: Changes) -> Connected:
    """A scope that is added helps tokens to come: live ones have what they were given."""
    now, user_id = oauth.clock(), person.user.id

    async def unit(tx: Tx) -> Connected:
        # Held before it is read: what is not named here stays as another change at the same moment left it.
        held = await store.touch_of(tx, user_id, client_id, now)
        before = await store.connected(tx, user_id, client_id) if held else None
        if before is None:
            raise NotFound(_ABSENT)
        _check(before, person, changes)
        scopes = changes.scopes_after(before)
        taken = before.consent.scopes - scopes
        await store.set_scopes(tx, before.consent.id, scopes, before.consent.other_scopes - taken)
        await store.set_organizations(tx, before.consent.id, changes.organizations_after(before))
        await follow_change(tx, before.consent.id, scopes, taken)
        after = await store.connected(tx, user_id, client_id)
        if after is None:
            raise NotFound(_ABSENT)
        return after

    return await oauth.db.write(unit)


def _check(connected: Connected, person: Person, changes: Changes) -> None:
    errors = {}
    allowed = connected.may_hold | (NAMES if connected.is_document else set())
    if foreign := next((name for name in changes.scopes or () if name not in allowed), None):
        errors["scopes"] = f"{foreign[:60]} is not among the scopes of this app."
    if any(org_id not in person.roles for org_id in (*(changes.organizations or ()), *changes.in_organizations)):
        errors["organizations"] = "You can give access only to organizations you are in."
    everywhere = changes.scopes_after(connected)
    chosen = (name for scopes in changes.in_organizations.values() for name in scopes)
    if foreign := next((name for name in chosen if name not in everywhere), None):
        errors.setdefault(
            "organizations", f"{foreign[:60]} is not allowed to this app, so no organization can allow it."
        )
    if errors:
        raise FieldErrors(errors)


async def count_tokens(oauth: OAuth, connected: Connected) -> int:
    now = oauth.clock()
    return await oauth.db.read(lambda tx: store.count_tokens(tx, connected.consent.id, now))


async def revoke(oauth: OAuth, user_id: str, client_id: str) -> None:
    """With its codes and tokens, which hang on it."""
    if not await oauth.db.write(lambda tx: store.remove(tx, user_id, client_id)):
        raise NotFound(_ABSENT)
