"""Live exchanged tokens: admins of the organization list and revoke them, members list their own."""

from hubgate.server.audit.model import Actor, EntryType
from hubgate.server.audit.record import record
from hubgate.server.clock import iso
from hubgate.server.errors import NotFound
from hubgate.server.oauth.apps.management import lock_app
from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.context import OAuth
from hubgate.server.oauth.exchange import store
from hubgate.server.oauth.exchange.model import Subject
from hubgate.server.oauth.exchange.store import ActiveToken, TokenHolder
from hubgate.server.paging import Page, PageRequest, page_of
from hubgate.server.storage.database import Tx

CURSOR = (int, str)
BY_MEMBER = (str,)
_AFTER_ALL = (2**62, "")
_ALL = Subject()


async def of_app(oauth: OAuth, app: App, asked: PageRequest, which: Subject = _ALL) -> Page[ActiveToken]:
    """Live tokens of an app, newest first."""
    before, now = _before(asked), oauth.clock()
    found = await oauth.db.read_long(lambda tx: store.of_app(tx, app, which, before, now, asked.fetch))
    return page_of(found, asked, _cursor)


async def by_member(oauth: OAuth, app: App, asked: PageRequest) -> Page[TokenHolder]:
    """Members for whom an app has live tokens, by name."""
    after, now = asked.last_shown(), oauth.clock()
    found = await oauth.db.read_long(lambda tx: store.by_member(tx, app, after, now, asked.fetch))
    return page_of(found, asked, lambda holding: (holding.user_name.lower(),))


async def of_member(oauth: OAuth, user_id: str, asked: PageRequest) -> Page[ActiveToken]:
    """Live tokens for a user, of all organizations' apps, newest first."""
    before, now = _before(asked), oauth.clock()
    found = await oauth.db.read_long(lambda tx: store.of_member(tx, user_id, before, now, asked.fetch))
    return page_of(found, asked, _cursor)


def _before(asked: PageRequest) -> tuple[int, str]:
    return (int(asked.after[0]), str(asked.after[1])) if asked.after else _AFTER_ALL


def _cursor(alive: ActiveToken) -> tuple[int, str]:
    return alive.created_at, alive.id


async def count(oauth: OAuth, app: App, which: Subject = _ALL) -> int:
    now = oauth.clock()
    return await oauth.db.read_long(lambda tx: store.count(tx, app, which, now))


async def revoke(oauth: OAuth, app: App, which: Subject, actor: Actor) -> int:
    """Revoke tokens and return how many. NotFound if a single token was named and does not exist."""
    now = oauth.clock()

    async def unit(tx: Tx) -> int:
        await lock_app(tx, app, actor)
        return await revoke_in(tx, app, which, actor, now)

    ended = await oauth.db.write_long(unit)
    if not ended and which.token_id is not None:
        raise NotFound("Token not found, or it has expired.")
    return ended


async def revoke_in(tx: Tx, app: App, which: Subject, actor: Actor, now: int) -> int:
    ended = await store.revoke(tx, app, which, now)
    if ended:
        text = f"revoked {ended:,} exchanged token{'' if ended == 1 else 's'} of the app {app.name}"
        data = {"clientId": app.client_id, "name": app.name, "ended": ended, **_filter_data(which)}
        await record(tx, app.org_id or "", EntryType.REVOKE_TOKENS, text, actor, now, data)
    return ended


def _filter_data(which: Subject) -> dict[str, str]:
    """The filter as audit data; times in the format of the audit log."""
    data = {"tokenId": which.token_id, "userId": which.user_id}
    data |= {name: iso(value) for name, value in (("since", which.since), ("until", which.until)) if value is not None}
    return {name: value for name, value in data.items() if value is not None}
