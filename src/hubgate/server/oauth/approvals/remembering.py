"""Approvals are remembered, looked up and changed. A unit that calls this has locked the consent."""

from collections.abc import Collection

from hubgate.server.oauth.approvals import store
from hubgate.server.oauth.approvals.model import shown_by
from hubgate.server.oauth.consent.wish import Wish
from hubgate.server.scopes import join_scopes, parse_scopes
from hubgate.server.storage.database import Database, Row, Tx

# A command line takes another port each time; who comes back to an old one is asked again.
MOST = 50


async def approved_before(db: Database, consent_id: str, wish: Wish) -> frozenset[str] | None:
    """The scopes approved on a page that showed the same as this wish's would; None if there was none."""
    shown = shown_by(wish)
    row = await store.find(db, consent_id, shown) if shown else None
    return frozenset(parse_scopes(row["scopes"])) if row else None


async def remember(tx: Tx, consent_id: str, wish: Wish, approved: frozenset[str], now: int) -> None:
    """What was shown now and left unticked is forgotten for this hub, or for all other servers: it is taken from that
    part of the consent.
    """
    shown, unticked = shown_by(wish), set(wish.scopes) - approved
    rows = {row["shown"]: row for row in await store.of_consent(tx, consent_id)}
    left = {key: _left(row, unticked, bool(wish.resources)) for key, row in rows.items()}
    await store.set_scopes(tx, consent_id, {key: join_scopes(scopes) for key, scopes in left.items()})
    if shown is not None:
        await store.save(tx, consent_id, shown, join_scopes(approved | left.get(shown.key, set())), now)
        if len(rows) >= MOST:
            await store.drop_oldest(tx, consent_id, MOST)


def _left(row: Row, unticked: Collection[str], elsewhere: bool) -> set[str]:
    scopes = set(parse_scopes(row["scopes"]))
    return scopes.difference(unticked) if bool(row["resources"]) is elsewhere else scopes


async def follow_change(tx: Tx, consent_id: str, scopes: Collection[str], taken: Collection[str]) -> None:
    """After the user chose under Connected apps what the app may do on this hub. What was taken away is taken for other
    servers, too; nothing is added there.
    """
    rows = await store.of_consent(tx, consent_id)
    chosen = {
        row["shown"]: join_scopes(_left(row, taken, elsewhere=True) if row["resources"] else scopes) for row in rows
    }
    await store.set_scopes(tx, consent_id, chosen)
