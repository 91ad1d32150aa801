"""Approvals are remembered, looked up and changed. A unit that calls this has locked the consent."""

from collections.abc import Collection

from hubgate.server.oauth.approvals import store
from hubgate.server.oauth.approvals.model import shown_by
from hubgate.server.oauth.consent.wish import Wish
from hubgate.server.scopes import join_scopes, parse_scopes
from hubgate.server.storage.database import Database, Tx

# A command line takes another port each time; who comes back to an old one is asked again.
MOST = 50


async def approved_before(db: Database, consent_id: str, wish: Wish) -> frozenset[str] | None:
    """The scopes approved on a page that showed the same as this wish's would; None if there was none."""
    shown = shown_by(wish)
    row = await store.find(db, consent_id, shown) if shown else None
    return frozenset(parse_scopes(row["scopes"])) if row else None


async def remember(tx: Tx, consent_id: str, wish: Wish, approved: frozenset[str], now: int) -> None:
    """What was shown now and left unticked is forgotten everywhere: it is taken from the whole consent."""
    shown, unticked = shown_by(wish), set(wish.scopes) - approved
    rows = await store.of_consent(tx, consent_id)
    before = {row["shown"]: set(parse_scopes(row["scopes"])) for row in rows}
    narrower = {key: join_scopes(scopes - unticked) for key, scopes in before.items() if scopes & unticked}
    await store.set_scopes(tx, consent_id, narrower)
    if shown is not None:
        scopes = approved | (before.get(shown.key, set()) - unticked)
        await store.save(tx, consent_id, shown, join_scopes(scopes), now)
        if len(before) >= MOST:
            await store.drop_oldest(tx, consent_id, MOST)


async def follow_change(tx: Tx, consent_id: str, scopes: Collection[str]) -> None:
    """After the user chose under Connected apps what the app may do on this hub; elsewhere nothing is added by that."""
    rows = await store.of_consent(tx, consent_id)
    chosen = {
        row["shown"]: join_scopes(set(parse_scopes(row["scopes"])) & set(scopes) if row["resources"] else scopes)
        for row in rows
    }
    await store.set_scopes(tx, consent_id, chosen)
