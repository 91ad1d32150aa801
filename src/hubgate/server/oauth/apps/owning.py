"""What an app's owner does with it: register, change, new secret, no secret, delete.

Each change is made on the app as it is when its turn comes, so that two of them at once lose nothing; and one of an
organization's app by an admin who was demoted meanwhile is refused.
"""

import json
import secrets
import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hubgate.server.accounts import store as account_store
from hubgate.server.accounts.form_once import OneUse, use_up
from hubgate.server.accounts.holding import hold_signed_in
from hubgate.server.accounts.model import Owner
from hubgate.server.accounts.organizations.changing import begin_by_id_as_admin
from hubgate.server.audit.model import Actor, Kind
from hubgate.server.audit.record import record
from hubgate.server.clock import SECOND
from hubgate.server.errors import Conflict, FieldErrors, NotFound
from hubgate.server.oauth.apps import store
from hubgate.server.oauth.apps.fields import check_client_id, checked
from hubgate.server.oauth.apps.model import LONGEST_OVERLAP, App
from hubgate.server.oauth.apps.wire import changes_between
from hubgate.server.oauth.consent import store as consent_store
from hubgate.server.oauth.context import OAuth
from hubgate.server.oauth.tokens import store as token_store
from hubgate.server.secret import fingerprint
from hubgate.server.storage.database import Row, Tx

MOST_APPS = 200
# Whoever refreshes again and again with an overlap would otherwise gather good secrets.
MOST_SECRETS = 5
MOST_USERS_SHOWN = 50
LONGEST_AUDITED = 4000
_ABSENT = "There is no such app."


async def create(
    oauth: OAuth, owner: Owner, draft: App, actor: Actor, use: OneUse | None = None
) -> tuple[App, str | None]:
    """The app and, for a confidential one, its secret, which is nowhere kept.

    With `use`, of the same form sent twice the second raises AlreadyUsed.
    """
    now = oauth.clock()
    client_id = check_client_id(draft.client_id) if draft.client_id else str(uuid.uuid4())
    app = checked(replace(draft, client_id=client_id, owner_id=owner.user_id, org_id=owner.org_id, created_at=now))
    secret = _new_secret() if app.confidential else None

    async def unit(tx: Tx) -> None:
        await _as_owner(tx, owner.org_id, actor)
        if use is not None:
            await use_up(tx, use)
        if await store.count_of_owner(tx, owner.user_id, owner.org_id) >= MOST_APPS:
            raise FieldErrors({"name": f"At most {MOST_APPS} apps. Delete one first."})
        if not await store.add(tx, app):
            raise Conflict(f"The client ID {app.client_id} is taken.")
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
        organization = await account_store.organization(oauth.db, app.org_id)
        return f"@{organization.name}" if organization else ""
    return ""


async def of_owner(oauth: OAuth, owner: Owner) -> Sequence[App]:
    """Oldest first."""
    return await oauth.db.read_long(lambda tx: store.of_owner(tx, owner.user_id, owner.org_id))


async def get(oauth: OAuth, owner: Owner, client_id: str) -> App:
    """Another owner's app is as if it were not there."""
    app = await store.find(oauth.db, client_id)
    if app is None or (app.owner_id, app.org_id) != (owner.user_id, owner.org_id):
        raise NotFound(_ABSENT)
    return app


async def update(oauth: OAuth, app: App, change: Callable[[App], App], actor: Actor) -> App:
    now = oauth.clock()

    async def unit(tx: Tx) -> App:
        before = await held(tx, app, actor)
        after = checked(change(before))
        changes = changes_between(before, after)
        if not changes:
            return before
        if after.exchange.paused != before.exchange.paused:
            # At both ends of the pause: an exchange that read the app while it was being paused may have slipped in.
            after = replace(after, exchange=replace(after.exchange, since=now))
            await token_store.end_exchanged(tx, app.client_id)
        await store.update(tx, after)
        what = f"changed the app {before.name}: {', '.join(changes)}"
        short = len(json.dumps(changes)) <= LONGEST_AUDITED
        data = {"changes": changes} if short else {"changed": list(changes)}
        await _tell(tx, after, Kind.APP_UPDATE, what, actor, now, data)
        return after

    return await oauth.db.write(unit)


async def refresh_secret(
    oauth: OAuth,
    app: App,
    overlap: int,
    actor: Actor,
    use: OneUse | None = None,
    along: Callable[[Tx], Awaitable[object]] | None = None,
) -> str:
    """A new secret; the old ones are good for `overlap` seconds more. A public app becomes confidential.

    What `along` does holds if this does.
    """
    if not 0 <= overlap <= LONGEST_OVERLAP:
        raise FieldErrors({"overlapSeconds": f"overlapSeconds is 0 to {LONGEST_OVERLAP:,} seconds."})
    now, secret = oauth.clock(), _new_secret()

    async def unit(tx: Tx) -> None:
        before = await held(tx, app, actor)
        if use is not None:
            await use_up(tx, use)
        await store.end_secrets(tx, app.client_id, now + overlap * SECOND)
        if len(await store.secrets_of(tx, app.client_id, now)) >= MOST_SECRETS:
            text = f"{MOST_SECRETS} secrets are still good. Refresh without an overlap."
            raise FieldErrors({"overlapSeconds": text})
        await store.update(tx, replace(before, confidential=True))
        await store.add_secret(tx, app.client_id, fingerprint(secret), secret[-4:], now)
        what = f"made a new secret for the app {before.name}"
        await _tell(tx, before, Kind.APP_REFRESH_SECRET, what, actor, now, {"overlapSeconds": overlap})
        if along is not None:
            await along(tx)

    await (oauth.db.write if along is None else oauth.db.write_long)(unit)
    return secret


async def secrets_of(oauth: OAuth, app: App) -> Sequence[Row]:
    """last_four, created_at, expires_at of the good ones, the current one last."""
    now = oauth.clock()
    return await oauth.db.read(lambda tx: store.secrets_of(tx, app.client_id, now))


async def end_old_secret(oauth: OAuth, app: App, last_four: str, actor: Actor) -> None:
    """Before its overlap is over. What it ends in is all that anybody still knows of it."""
    now = oauth.clock()

    async def unit(tx: Tx) -> None:
        before = await held(tx, app, actor)
        if not await store.end_old_secret(tx, app.client_id, last_four, now):
            raise NotFound("There is no such old secret, or it has ended.")
        what = f"ended an old secret of the app {before.name}"
        await _tell(tx, before, Kind.APP_DELETE_SECRET, what, actor, now, {"last4": last_four})

    await oauth.db.write(unit)


async def delete_secret(oauth: OAuth, app: App, actor: Actor) -> App:
    """The app is public from now on (attack O20)."""
    now = oauth.clock()

    async def unit(tx: Tx) -> App:
        before = await held(tx, app, actor)
        public = replace(before, confidential=False)
        if before.confidential:
            await store.update(tx, public)
            await store.remove_secrets(tx, app.client_id)
            what = f"deleted the secret of the app {before.name}"
            await _tell(tx, before, Kind.APP_DELETE_SECRET, what, actor, now)
        return public

    return await oauth.db.write(unit)


async def delete(oauth: OAuth, app: App, actor: Actor) -> None:
    """With every consent and token; at the next request they are no good any more."""
    now = oauth.clock()

    async def unit(tx: Tx) -> None:
        before = await held(tx, app, actor)
        await consent_store.remove_of_client(tx, app.client_id)
        await token_store.end_of_client(tx, app.client_id)
        await store.remove(tx, app.client_id)
        await _tell(tx, before, Kind.APP_DELETE, f"deleted the app {before.name}", actor, now)

    await oauth.db.write(unit)


@dataclass(frozen=True)
class Users:
    """Who allowed an app: how many, and the latest."""

    total: int
    latest: Sequence[Row]


async def users_of(oauth: OAuth, app: App) -> Users:
    async def unit(tx: Tx) -> Users:
        total = await consent_store.count_of_app(tx, app.client_id)
        return Users(total, await consent_store.users_of_app(tx, app.client_id, MOST_USERS_SHOWN))

    return await oauth.db.read_long(unit)


async def held(tx: Tx, app: App, actor: Actor) -> App:
    """The app as it is now, for an actor who is still its owner; nobody else changes it until this unit ends."""
    await _as_owner(tx, app.org_id, actor)
    latest = await store.hold(tx, app.client_id)
    if latest is None or (latest.owner_id, latest.org_id) != (app.owner_id, app.org_id):
        raise NotFound(_ABSENT)
    return latest


async def _as_owner(tx: Tx, org_id: str | None, actor: Actor) -> None:
    if org_id is not None:
        await begin_by_id_as_admin(tx, org_id, actor)
    else:
        await hold_signed_in(tx, actor.user_id, actor.credentials_version)


async def _tell(
    tx: Tx, app: App, kind: Kind, text: str, actor: Actor, now: int, data: dict[str, Any] | None = None
) -> None:
    if app.org_id is not None:
        about = {"clientId": app.client_id, "name": app.name, **(data or {})}
        await record(tx, app.org_id, kind, text, actor, now, about)


def _new_secret() -> str:
    return f"hfcs_{secrets.token_urlsafe(32)}"
