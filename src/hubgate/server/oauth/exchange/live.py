"""Exchanged tokens that are alive: the organization's admins see and end them, a member sees their own."""

from collections.abc import Sequence
from dataclasses import dataclass

from hubgate.server.audit.model import Actor, Kind
from hubgate.server.audit.record import record
from hubgate.server.errors import NotFound
from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.context import OAuth
from hubgate.server.oauth.exchange import store
from hubgate.server.oauth.exchange.exchanging import verdict_in
from hubgate.server.oauth.exchange.model import Given, Refused
from hubgate.server.oauth.exchange.store import Alive
from hubgate.server.paging import Page, PageRequest, page_of
from hubgate.server.storage.database import Tx

CURSOR = (int, str)
MOST_SHOWN_TO_MEMBER = 100
_AFTER_ALL = (2**62, "")


@dataclass(frozen=True)
class Which:
    """Of the live tokens of an app; all of them where nothing is said. Times are ours, in microseconds."""

    token_id: str | None = None
    user_id: str | None = None
    since: int | None = None
    until: int | None = None


async def of_app(oauth: OAuth, app: App, asked: PageRequest, user_id: str | None = None) -> Page[Alive]:
    """The latest first."""
    before = (int(asked.after[0]), str(asked.after[1])) if asked.after else _AFTER_ALL
    now, org_id = oauth.clock(), app.org_id or ""

    async def unit(tx: Tx) -> list[Alive]:
        return await store.of_app(tx, org_id, app.client_id, user_id, before, now, asked.fetch)

    return page_of(await oauth.db.read_long(unit), asked, lambda alive: (alive.created_at, alive.id))


async def of_member(oauth: OAuth, user_id: str) -> Sequence[Alive]:
    now = oauth.clock()
    return await oauth.db.read_long(lambda tx: store.of_member(tx, user_id, now, MOST_SHOWN_TO_MEMBER))


async def end(oauth: OAuth, app: App, which: Which, actor: Actor) -> int:
    """How many were ended. NotFound for a single one that is not there."""
    now, org_id = oauth.clock(), app.org_id or ""

    async def unit(tx: Tx) -> int:
        ended = await store.end(
            tx,
            org_id,
            app.client_id,
            family=which.token_id,
            user_id=which.user_id,
            since=which.since,
            until=which.until,
        )
        if ended:
            text = f"ended {ended:,} exchanged token{'' if ended == 1 else 's'} of the app {app.name}"
            data = {"clientId": app.client_id, "name": app.name, "ended": ended, **_said(which)}
            await record(tx, org_id, Kind.REVOKE_TOKENS, text, actor, now, data)
        return ended

    ended = await oauth.db.write_long(unit)
    if not ended and which.token_id is not None:
        raise NotFound("There is no such token, or it has ended.")
    return ended


def _said(which: Which) -> dict[str, str | int]:
    said = {"tokenId": which.token_id, "userId": which.user_id, "since": which.since, "until": which.until}
    return {name: value for name, value in said.items() if value is not None}


async def dry_run(oauth: OAuth, app: App, email: str, scope: str | None, ip: str) -> Given | Refused:
    """What an exchange would give now. Nothing is given, counted or recorded."""
    return await oauth.db.read(lambda tx: verdict_in(tx, oauth, app.client_id, email, scope, ip))
