"""Creates, looks up and uses mailed links."""

import secrets

from hubgate.server.accounts.links import store
from hubgate.server.accounts.links.model import Link, Purpose
from hubgate.server.errors import NotFound
from hubgate.server.secret import fingerprint
from hubgate.server.storage.database import Database, Tx

_GONE = "This link was already used or has expired. Request a new one."


async def create(tx: Tx, link: Link, now: int) -> str:
    """Create a link and return its secret, for the URL in the mail."""
    secret = secrets.token_urlsafe(32)
    await store.add(tx, fingerprint(secret), link, now + link.purpose.lifetime)
    return secret


async def find(db: Database, secret: str, purpose: Purpose, now: int) -> Link:
    """Find a link without using it up: opening a link only shows a page, because mail scanners open links too."""
    link = await store.find(db, fingerprint(secret), now)
    if link is None or link.purpose is not purpose:
        raise NotFound(_GONE)
    return link


async def use(tx: Tx, secret: str, purpose: Purpose, now: int) -> Link:
    """Use up a link; NotFound if it was used or has expired."""
    link = await store.use(tx, fingerprint(secret), now)
    if link is None or link.purpose is not purpose:
        raise NotFound(_GONE)
    return link
