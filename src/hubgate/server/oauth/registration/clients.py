"""Use cases of a client: it registers itself, and reads, updates or deletes its registration."""

import secrets
import uuid

from msgspec.structs import replace

from hubgate.server.accounts.limits import network_of
from hubgate.server.audit.model import SYSTEM
from hubgate.server.clock import MINUTE, SECOND
from hubgate.server.errors import TooManyRequests, Unauthorized
from hubgate.server.oauth.apps import management
from hubgate.server.oauth.apps import store as app_store
from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.context import OAuth
from hubgate.server.oauth.registration import store
from hubgate.server.oauth.registration.model import TOKEN, ClientMetadata, app_of
from hubgate.server.secret import fingerprint
from hubgate.server.storage.database import Tx
from hubgate.server.throttle.rate_limiter import Limit

# Anyone may register, so the hub must not be filled from one address (attack O84).
REGISTRATIONS_FROM_ADDRESS = Limit(
    "client registration", 20, 60 * 60, "Too many registrations from this address. Try again in {duration}."
)
UPDATES_FROM_ADDRESS = Limit(
    "client registration update", 60, 60 * 60, "Too many updates from this address. Try again in {duration}."
)
# A new app is not deleted for this long to make room for others: its first user may be signing in.
_FIRST_SIGN_IN = 10 * MINUTE
# A user who approved more than this fraction of all apps does not protect them: one account could fill the hub.
_USERS_SHARE = 100
_TOKEN_MISSING = "Registration needs a token of this hub's operator. Ask for one, or register the app in your settings."  # noqa: S105
_UNKNOWN_TOKEN = "The token is unknown or was revoked."  # noqa: S105 (a message)


async def register(oauth: OAuth, metadata: ClientMetadata, bearer: str, ip: str) -> tuple[App, str]:
    """Register an app; returns it with its registration access token, of which only a hash is stored.

    `bearer` is the operator's initial access token, which is needed if the hub is set up so.
    """
    now = oauth.clock()
    app, text = app_of(metadata, str(uuid.uuid4()), now), f"hf_client_{secrets.token_urlsafe(32)}"

    async def unit(tx: Tx) -> None:
        if oauth.registration == TOKEN and not await store.use_token(tx, fingerprint(bearer), now):
            raise Unauthorized(_UNKNOWN_TOKEN if bearer else _TOKEN_MISSING)
        await oauth.limiter.require_in(tx, REGISTRATIONS_FROM_ADDRESS, network_of(ip))
        await _make_room(oauth, tx, now)
        await app_store.add(tx, app)
        await store.add(tx, app.client_id, fingerprint(text), now)

    await oauth.db.write(unit)
    return app, text


async def _make_room(oauth: OAuth, tx: Tx, now: int) -> None:
    """Limit the number of apps, no matter from how many addresses they register (attack O84). Apps that no user has
    approved are deleted first, so that a flood does not lock out later apps.
    """
    excess = await store.count(tx) + 1 - oauth.max_self_registered
    most_by_user = max(1, oauth.max_self_registered // _USERS_SHARE)
    if excess > 0 and await store.drop_unapproved(tx, now - _FIRST_SIGN_IN, excess, most_by_user) < excess:
        raise TooManyRequests(
            "Too many apps have registered themselves on this hub. Try again in 10 minutes.",
            retry_after=_FIRST_SIGN_IN // SECOND,
        )


async def get(oauth: OAuth, client_id: str, bearer: str) -> App:
    """The app; Unauthorized also if it was deleted (RFC 7592, section 2.1)."""
    # PostgreSQL rejects NUL in a query parameter.
    app = None if "\0" in client_id else await store.find(oauth.db, client_id, fingerprint(bearer))
    if app is None:
        raise Unauthorized(_UNKNOWN_TOKEN)
    return app


async def update(oauth: OAuth, client_id: str, metadata: ClientMetadata, ip: str) -> App:
    """Replace the metadata (RFC 7592, section 2.2). Users are asked again if name or redirect URIs have changed."""
    described = app_of(metadata, client_id, oauth.clock())

    async def unit(tx: Tx) -> App:
        await oauth.limiter.require_in(tx, UPDATES_FROM_ADDRESS, network_of(ip))
        before = await app_store.lock(tx, client_id)
        if before is None:
            raise Unauthorized(_UNKNOWN_TOKEN)
        after = replace(described, created_at=before.created_at, extra_scopes=before.extra_scopes)
        await app_store.update(tx, after)
        return after

    return await oauth.db.write(unit)


async def delete(oauth: OAuth, client_id: str) -> None:
    """Delete the app with its consents and tokens."""
    now = oauth.clock()

    async def unit(tx: Tx) -> None:
        app = await app_store.lock(tx, client_id)
        if app is not None:
            await management.delete_locked(tx, app, SYSTEM, now)

    await oauth.db.write(unit)
