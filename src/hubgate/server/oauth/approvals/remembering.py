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


async def remember(
    tx: Tx, consent_id: str, wish: Wish, approved: frozenset[str], before: frozenset[str], now: int
) -> None:
    """What was shown now and left unticked is forgotten everywhere: it is taken from the whole consent. What the
    consent did not hold `before`, and has now for other servers, is not approved for this hub.
    """
    shown, unticked = shown_by(wish), set(wish.scopes) - approved
    rows = {row["shown"]: row for row in await store.of_consent(tx, consent_id)}
    left = {key: _left(row, before if wish.resources else None) - unticked for key, row in rows.items()}
    await store.set_scopes(tx, consent_id, {key: join_scopes(scopes) for key, scopes in left.items()})
    if shown is not None:
        await store.save(tx, consent_id, shown, join_scopes(approved | left.get(shown.key, set())), now)
        if len(rows) >= MOST:
            await store.drop_oldest(tx, consent_id, MOST)


def _left(row: Row, for_hub: frozenset[str] | None) -> set[str]:
    """Of what was approved there; `for_hub` limits what is for this hub."""
    scopes = set(parse_scopes(row["scopes"]))
    return scopes if for_hub is None or row["resources"] else scopes & for_hub


async def follow_change(tx: Tx, consent_id: str, scopes: Collection[str]) -> None:
    """After the user chose under Connected apps what the app may do on this hub; elsewhere nothing is added by that."""
    rows = await store.of_consent(tx, consent_id)
    chosen = {
        row["shown"]: join_scopes(set(parse_scopes(row["scopes"])) & set(scopes) if row["resources"] else scopes)
        for row in rows
    }
    await store.set_scopes(tx, consent_id, chosen)
