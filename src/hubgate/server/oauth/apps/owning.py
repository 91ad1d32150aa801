"""What an app's owner does with it: register, change, new secret, no secret, delete."""

import secrets
import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from hubgate.server.accounts import store as account_store
from hubgate.server.accounts.checking import Checking
from hubgate.server.accounts.organizations import store as org_store
from hubgate.server.audit.model import Actor, Kind
from hubgate.server.audit.record import record
from hubgate.server.clock import SECOND
from hubgate.server.errors import Conflict, NotFound, Unprocessable
from hubgate.server.oauth.apps import store
from hubgate.server.oauth.apps.model import LONGEST_LIFETIME, LONGEST_OVERLAP, App
from hubgate.server.oauth.consent import store as consent_store
from hubgate.server.oauth.context import OAuth
from hubgate.server.oauth.redirects import MATCHES, check_redirect_uri
from hubgate.server.oauth.tokens import store as token_store
from hubgate.server.scopes import NAMES
from hubgate.server.secret import fingerprint
from hubgate.server.storage.database import Tx

LONGEST_NAME = 96
MOST_REDIRECT_URIS = 50
MOST_APPS = 200
SHORTEST_LIFETIME = 60
_ABSENT = "There is no such app."


@dataclass(frozen=True)
class Owner:
    """A user, or an organization; one of the two."""

    user_id: str | None = None
    org_id: str | None = None

    def owns(self, app: App) -> bool:
        return (app.owner_id, app.org_id) == (self.user_id, self.org_id)


def checked(app: App) -> App:
    """The app as it may be stored; FieldErrors names every field that has to be mended, by its name on the wire."""
    checking = Checking()
    name = checking.field("name", _name, app.name)
    homepage = checking.field("homepage", _homepage, app.homepage)
    if len(app.redirect_uris) > MOST_REDIRECT_URIS:
        checking.refuse("redirectUris", f"An app has at most {MOST_REDIRECT_URIS} redirect URIs.")
    for uri in app.redirect_uris:
        checking.field("redirectUris", check_redirect_uri, uri)
    unknown = _outside(app.scopes, NAMES)
    if unknown:
        checking.refuse("scopes", f"{unknown} is not a scope.")
    missing = _outside(app.required_scopes, {*app.scopes, *app.extra_scopes})
    if missing:
        checking.refuse("requiredScopes", f"{missing} is required but not among the app's scopes.")
    if not SHORTEST_LIFETIME <= app.token_lifetime <= LONGEST_LIFETIME:
        checking.refuse("tokenLifetime", f"A token lives from {SHORTEST_LIFETIME} to {LONGEST_LIFETIME} seconds.")
    if app.redirect_match not in MATCHES:
        checking.refuse("redirectMatch", f"Redirects match by {' or '.join(MATCHES)}.")
    checking.done()
    return replace(app, name=name, homepage=homepage, redirect_uris=tuple(dict.fromkeys(app.redirect_uris)))


def _outside(names: Collection[str], known: Collection[str]) -> str:
    return next((name for name in names if name not in known), "")


def _name(given: str) -> str:
    name = " ".join(given.split())
    if not 1 <= len(name) <= LONGEST_NAME or not name.isprintable():
        raise Unprocessable(f"An app's name has 1 to {LONGEST_NAME} characters.")
    return name


def _homepage(given: str) -> str:
    from_web = given.startswith(("http://", "https://")) and given.isascii() and given.isprintable()
    if given and (not from_web or " " in given or len(given) > 300):
        raise Unprocessable("A home page is an address such as https://app.example.")
    return given


async def create(oauth: OAuth, owner: Owner, draft: App, actor: Actor) -> tuple[App, str | None]:
    """The app and, for a confidential one, its secret, which is nowhere kept."""
    now = oauth.clock()
    app = checked(
        replace(
            draft,
            client_id=draft.client_id or str(uuid.uuid4()),
            owner_id=owner.user_id,
            org_id=owner.org_id,
            created_at=now,
        )
    )
    secret = _new_secret() if app.confidential else None

    async def unit(tx: Tx) -> None:
        if len(await store.of_owner(tx, owner.user_id, owner.org_id)) >= MOST_APPS:
            raise Unprocessable(f"At most {MOST_APPS} apps. Delete one first.")
        if not await store.add(tx, app):
            raise Conflict(f"The client id {app.client_id} is taken.")
        if secret is not None:
            await store.add_secret(tx, app.client_id, fingerprint(secret), secret[-4:], now)
        await _tell(tx, app, Kind.APP_CREATE, f"created the app {app.name}", actor, now)

    await oauth.db.write(unit)
    return app, secret


async def owner_name(oauth: OAuth, app: App) -> str:
    """As people write it; empty for an app that nobody here registered."""
    if app.owner_id is not None:
        user = await account_store.user(oauth.db, app.owner_id)
        return f"@{user.name}" if user else ""
    if app.org_id is not None:
        organization = await org_store.organization(oauth.db, app.org_id)
        return f"@{organization.name}" if organization else ""
    return ""


async def of_owner(oauth: OAuth, owner: Owner) -> Sequence[App]:
    return await oauth.db.read_long(lambda tx: store.of_owner(tx, owner.user_id, owner.org_id))


async def get(oauth: OAuth, owner: Owner, client_id: str) -> App:
    """Another owner's app is as if it were not there."""
    app = await store.find(oauth.db, client_id)
    if app is None or not owner.owns(app):
        raise NotFound(_ABSENT)
    return app


async def update(oauth: OAuth, before: App, after: App, actor: Actor) -> App:
    app = checked(after)
    now = oauth.clock()

    async def unit(tx: Tx) -> None:
        if not await store.update(tx, app):
            raise NotFound(_ABSENT)
        await _tell(tx, app, Kind.APP_UPDATE, f"changed the app {before.name}", actor, now)

    await oauth.db.write(unit)
    return app


async def refresh_secret(oauth: OAuth, app: App, overlap: int, actor: Actor) -> str:
    """A new secret; the old one is good for `overlap` seconds more. A public app becomes confidential."""
    if not 0 <= overlap <= LONGEST_OVERLAP:
        raise Unprocessable(f"An overlap lasts from 0 to {LONGEST_OVERLAP} seconds.")
    now, secret = oauth.clock(), _new_secret()

    async def unit(tx: Tx) -> None:
        if not await store.update(tx, replace(app, confidential=True)):
            raise NotFound(_ABSENT)
        await store.end_secrets(tx, app.client_id, now + overlap * SECOND)
        await store.add_secret(tx, app.client_id, fingerprint(secret), secret[-4:], now)
        await _tell(tx, app, Kind.APP_REFRESH_SECRET, f"made a new secret for the app {app.name}", actor, now)

    await oauth.db.write(unit)
    return secret


async def delete_secret(oauth: OAuth, app: App, actor: Actor) -> App:
    """The app is public from now on (attack O20)."""
    now, public = oauth.clock(), replace(app, confidential=False)

    async def unit(tx: Tx) -> None:
        if not await store.update(tx, public):
            raise NotFound(_ABSENT)
        await store.remove_secrets(tx, app.client_id)
        await _tell(tx, app, Kind.APP_DELETE_SECRET, f"deleted the secret of the app {app.name}", actor, now)

    await oauth.db.write(unit)
    return public


async def delete(oauth: OAuth, app: App, actor: Actor) -> None:
    """With every consent and token."""
    now = oauth.clock()

    async def unit(tx: Tx) -> None:
        await consent_store.remove_of_client(tx, app.client_id)
        await token_store.end_of_client(tx, app.client_id)
        if not await store.remove(tx, app.client_id):
            raise NotFound(_ABSENT)
        await _tell(tx, app, Kind.APP_DELETE, f"deleted the app {app.name}", actor, now)

    await oauth.db.write(unit)


async def _tell(tx: Tx, app: App, kind: Kind, text: str, actor: Actor, now: int) -> None:
    if app.org_id is not None:
        await record(tx, app.org_id, kind, text, actor, now, {"clientId": app.client_id, "name": app.name})


def _new_secret() -> str:
    return f"hfcs_{secrets.token_urlsafe(32)}"
