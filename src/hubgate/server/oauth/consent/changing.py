"""Connected apps: what a user allowed, looked at, changed and taken back. Live tokens follow at the next request."""

from collections.abc import Collection, Sequence

from hubgate.server.accounts.model import Person
from hubgate.server.errors import FieldErrors, NotFound
from hubgate.server.ids import AFTER_ALL
from hubgate.server.oauth.approvals.remembering import follow_change
from hubgate.server.oauth.consent import store
from hubgate.server.oauth.consent.model import Connected
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


async def change(
    oauth: OAuth,
    person: Person,
    client_id: str,
    scopes: Collection[str] | None,
    organizations: Collection[str] | None,
) -> Connected:
    """What is None stays as it is. A scope that is added helps tokens to come: live ones have what they were given."""
    now, user_id = oauth.clock(), person.user.id

    async def unit(tx: Tx) -> Connected:
        before = await store.connected(tx, user_id, client_id)
        if before is None or not await store.touch(tx, before.consent.id, now):
            raise NotFound(_ABSENT)
        _check(before, person, scopes or (), organizations or ())
        if scopes is not None:
            await store.set_scopes(tx, before.consent.id, scopes)
            await follow_change(tx, before.consent.id, scopes)
        if organizations is not None:
            await store.set_organizations(tx, before.consent.id, set(organizations))
        after = await store.connected(tx, user_id, client_id)
        if after is None:
            raise NotFound(_ABSENT)
        return after

    return await oauth.db.write(unit)


def _check(connected: Connected, person: Person, scopes: Collection[str], organizations: Collection[str]) -> None:
    errors = {}
    allowed = connected.may_hold | (NAMES if connected.is_document else set())
    if foreign := next((name for name in scopes if name not in allowed), None):
        errors["scopes"] = f"{foreign[:60]} is not among the scopes of this app."
    if any(org_id not in person.roles for org_id in organizations):
        errors["organizations"] = "You can give access only to organizations you are in."
    if errors:
        raise FieldErrors(errors)


async def count_tokens(oauth: OAuth, connected: Connected) -> int:
    now = oauth.clock()
    return await oauth.db.read(lambda tx: store.count_tokens(tx, connected.consent.id, now))


async def revoke(oauth: OAuth, user_id: str, client_id: str) -> None:
    """With its codes and tokens, which hang on it."""
    if not await oauth.db.write(lambda tx: store.remove(tx, user_id, client_id)):
        raise NotFound(_ABSENT)
