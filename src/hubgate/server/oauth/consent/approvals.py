"""Approvals: what a consent page showed when the user approved, that is the servers and a native app's redirect URI.

A later request skips the consent page only if the user has approved the same before. Tokens are limited by the consent
itself. A transaction that changes approvals has locked the consent.
"""

from collections.abc import Collection

from hubgate.server.oauth.consent import store
from hubgate.server.oauth.consent.model import AccessRequest, consent_details
from hubgate.server.scopes import join_scopes, parse_scopes
from hubgate.server.storage.database import Database, Row, Tx

# Per consent. A CLI uses a new port each time; for ports of deleted approvals the user is asked again.
MOST = 50


async def is_approved(db: Database, consent_id: str, wish: AccessRequest) -> frozenset[str] | None:
    """The scopes approved on a consent page that showed the same; None if there was none."""
    shown = consent_details(wish)
    row = await store.find_approval(db, consent_id, shown) if shown else None
    return frozenset(parse_scopes(row["scopes"])) if row else None


async def remember(tx: Tx, consent_id: str, wish: AccessRequest, approved: frozenset[str], now: int) -> None:
    """Store an approval.

    Scopes that were shown but not ticked are removed from the other approvals too: from those for this hub, or from
    those for other servers, depending on the request.
    """
    shown, unticked = consent_details(wish), set(wish.scopes) - approved
    rows = {row["shown"]: row for row in await store.approvals_of(tx, consent_id)}
    remaining = {key: _remaining(row, unticked, bool(wish.resources)) for key, row in rows.items()}
    await store.set_approval_scopes(tx, consent_id, {key: join_scopes(scopes) for key, scopes in remaining.items()})
    if shown is not None:
        await store.save_approval(tx, consent_id, shown, join_scopes(approved | remaining.get(shown.key, set())), now)
        if len(rows) >= MOST:
            await store.drop_oldest_approvals(tx, consent_id, MOST)


def _remaining(row: Row, unticked: Collection[str], elsewhere: bool) -> set[str]:
    scopes = set(parse_scopes(row["scopes"]))
    return scopes.difference(unticked) if bool(row["resources"]) is elsewhere else scopes


async def follow_change(tx: Tx, consent_id: str, scopes: Collection[str], taken_elsewhere: Collection[str]) -> None:
    """Update approvals after a change under Connected apps: `scopes` on this hub, less `taken_elsewhere` on others."""
    rows = await store.approvals_of(tx, consent_id)
    chosen = {
        row["shown"]: join_scopes(_remaining(row, taken_elsewhere, elsewhere=True) if row["resources"] else scopes)
        for row in rows
    }
    await store.set_approval_scopes(tx, consent_id, chosen)
