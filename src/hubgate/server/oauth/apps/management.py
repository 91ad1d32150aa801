"""App management by the owner: register an app, change it, replace or delete its secret, delete the app.

A change locks the app and is applied to its latest state, so that concurrent changes are not lost. A change by an admin
who has since been demoted is rejected.
"""

import json
import secrets
import uuid
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from hubgate.server.accounts import store as account_store
from hubgate.server.accounts.account_locks import lock_account_and_credentials
from hubgate.server.accounts.model import Owner
from hubgate.server.accounts.organizations.locks import lock_organization_by_id_as_admin
from hubgate.server.accounts.single_use_forms import VerifiedNonce, consume_nonce
from hubgate.server.audit.model import Actor, EntryType
from hubgate.server.audit.record import record
from hubgate.server.clock import SECOND
from hubgate.server.errors import Conflict, FieldErrors, NotFound
from hubgate.server.oauth.apps import store
from hubgate.server.oauth.apps.fields import check_client_id, validate_app
from hubgate.server.oauth.apps.model import LONGEST_OVERLAP, App
from hubgate.server.oauth.apps.wire import changes_between
from hubgate.server.oauth.consent import store as consent_store
from hubgate.server.oauth.context import OAuth
from hubgate.server.oauth.tokens import store as token_store
from hubgate.server.secret import fingerprint
from hubgate.server.storage.database import Row, Tx

MAX_APPS = 200
# Otherwise repeated rotation with an overlap would accumulate valid secrets.
MAX_SECRETS = 5
MAX_USERS_SHOWN = 50
LONGEST_AUDITED = 4000
_NOT_FOUND = "App not found."


async def create(
    oauth: OAuth, owner: Owner, draft: App, actor: Actor, nonce: VerifiedNonce | None = None
) -> tuple[App, str | None]:
    """Register an app; returns it with its secret if it is confidential. The secret itself is not stored.

    With `nonce`, sending the same form twice raises AlreadyUsed.
    """
    now = oauth.clock()
    client_id = check_client_id(draft.client_id) if draft.client_id else str(uuid.uuid4())
    app = validate_app(replace(draft, client_id=client_id, owner_id=owner.user_id, org_id=owner.org_id, created_at=now))
    secret = _new_secret() if app.confidential else None

    async def unit(tx: Tx) -> None:
        await _require_owner(tx, owner.org_id, actor)
        if nonce is not None:
            await consume_nonce(tx, nonce)
        if await store.count_owner_apps(tx, owner.user_id, owner.org_id) >= MAX_APPS:
            raise FieldErrors({"name": f"At most {MAX_APPS} apps. Delete one first."})
        if not await store.add(tx, app):
            raise Conflict(f"The client ID {app.client_id} is taken.")
        if secret is not None:
            await store.add_secret(tx, app.client_id, fingerprint(secret), secret[-4:], now)
        await record_audit(tx, app, EntryType.APP_CREATE, f"created the app {app.name}", actor, now)

    await oauth.db.write(unit)
    return app, secret


async def owner_name(oauth: OAuth, app: App) -> str:
    """The owner as @name; empty for an unregistered app."""
    if app.owner_id is not None:
        user = await account_store.user(oauth.db, app.owner_id)
        return f"@{user.name}" if user else ""
    if app.org_id is not None:
        organization = await account_store.organization(oauth.db, app.org_id)
        return f"@{organization.name}" if organization else ""
    return ""


async def of_owner(oauth: OAuth, owner: Owner) -> Sequence[App]:
    """The owner's apps, oldest first."""
    return await oauth.db.read_long(lambda tx: store.of_owner(tx, owner.user_id, owner.org_id))


async def get(oauth: OAuth, owner: Owner, client_id: str) -> App:
    """The owner's app; NotFound also for an app of another owner."""
    app = await store.find(oauth.db, client_id)
    if app is None or (app.owner_id, app.org_id) != (owner.user_id, owner.org_id):
        raise NotFound(_NOT_FOUND)
    return app


async def update(oauth: OAuth, app: App, change: Callable[[App], App], actor: Actor) -> App:
    now = oauth.clock()

    async def unit(tx: Tx) -> App:
        before = await lock_app(tx, app, actor)
        after = validate_app(change(before))
        changes = changes_between(before, after)
        if not changes:
            return before
        if after.exchange.paused != before.exchange.paused:
            # On pause and on resume: a concurrent exchange may have read the app before the pause committed.
            after = replace(after, exchange=after.exchange.restarted(now))
            await token_store.revoke_exchanged(tx, app.client_id)
        await store.update(tx, after)
        what = f"changed the app {before.name}: {', '.join(changes)}"
        short = len(json.dumps(changes)) <= LONGEST_AUDITED
        data = {"changes": changes} if short else {"changed": list(changes)}
        await record_audit(tx, after, EntryType.APP_UPDATE, what, actor, now, data)
        return after

    return await oauth.db.write(unit)


async def refresh_secret(
    oauth: OAuth,
    app: App,
    overlap: int,
    actor: Actor,
    nonce: VerifiedNonce | None = None,
    in_same_tx: Callable[[Tx], Awaitable[object]] | None = None,
) -> str:
    """Create a new secret; old secrets expire in `overlap` seconds. A public app becomes confidential.

    `in_same_tx` runs last in the transaction: if it fails, no secret is created.
    """
    if app.self_registered:
        raise Conflict(f"{app.name} registered itself. Such an app has no secret.")
    if not 0 <= overlap <= LONGEST_OVERLAP:
        raise FieldErrors({"overlapSeconds": f"overlapSeconds must be 0 to {LONGEST_OVERLAP:,} seconds."})
    now, secret = oauth.clock(), _new_secret()

    async def unit(tx: Tx) -> None:
        before = await lock_app(tx, app, actor)
        if nonce is not None:
            await consume_nonce(tx, nonce)
        if overlap:
            await store.expire_secrets(tx, app.client_id, now + overlap * SECOND)
        else:
            # Deleted, because a concurrent request may compare its expiry with an earlier time.
            await store.remove_secrets(tx, app.client_id)
        if len(await store.secrets_of(tx, app.client_id, now)) >= MAX_SECRETS:
            text = f"{MAX_SECRETS} secrets are still valid. Refresh without an overlap."
            raise FieldErrors({"overlapSeconds": text})
        await store.update(tx, replace(before, confidential=True))
        await store.add_secret(tx, app.client_id, fingerprint(secret), secret[-4:], now)
        what = f"created a new secret for the app {before.name}"
        await record_audit(tx, before, EntryType.APP_REFRESH_SECRET, what, actor, now, {"overlapSeconds": overlap})
        if in_same_tx is not None:
            await in_same_tx(tx)

    await (oauth.db.write if in_same_tx is None else oauth.db.write_long)(unit)
    return secret


async def secrets_of(oauth: OAuth, app: App) -> Sequence[Row]:
    """last_four, created_at and expires_at of valid secrets, the current secret last."""
    now = oauth.clock()
    return await oauth.db.read(lambda tx: store.secrets_of(tx, app.client_id, now))


async def revoke_old_secret(oauth: OAuth, app: App, last_four: str, actor: Actor) -> None:
    """Expire an old secret before its overlap ends. It is identified by its last four characters."""
    now = oauth.clock()

    async def unit(tx: Tx) -> None:
        before = await lock_app(tx, app, actor)
        if not await store.remove_old_secret(tx, app.client_id, last_four, now):
            raise NotFound("Old secret not found, or it has expired.")
        what = f"revoked an old secret of the app {before.name}"
        await record_audit(tx, before, EntryType.APP_DELETE_SECRET, what, actor, now, {"last4": last_four})

    await oauth.db.write(unit)


async def delete_secret(oauth: OAuth, app: App, actor: Actor) -> App:
    """Delete all secrets and make the app public (attack O20)."""
    now = oauth.clock()

    async def unit(tx: Tx) -> App:
        before = await lock_app(tx, app, actor)
        public = replace(before, confidential=False)
        if before.confidential:
            await store.update(tx, public)
            await store.remove_secrets(tx, app.client_id)
            what = f"deleted the secret of the app {before.name}"
            await record_audit(tx, before, EntryType.APP_DELETE_SECRET, what, actor, now)
        return public

    return await oauth.db.write(unit)


async def delete(oauth: OAuth, app: App, actor: Actor) -> None:
    """Delete the app with all its consents and tokens, which fail from the next request on."""
    now = oauth.clock()

    async def unit(tx: Tx) -> None:
        await delete_locked(tx, await lock_app(tx, app, actor), actor, now)

    await oauth.db.write(unit)


async def delete_locked(tx: Tx, app: App, actor: Actor, now: int, reason: str = "") -> None:
    """Delete an app that the caller's transaction has locked. `reason` is for a deletion that no owner requested."""
    await consent_store.delete_app_consents(tx, app.client_id)
    await token_store.revoke_app_tokens(tx, app.client_id)
    await store.remove(tx, app.client_id)
    data = {"reason": reason} if reason else None
    await record_audit(tx, app, EntryType.APP_DELETE, f"deleted the app {app.name}", actor, now, data)


class AppUsers(Struct, frozen=True):
    """Users who have approved an app: their number, and the newest."""

    total: int
    latest: Sequence[Row]


async def get_users(oauth: OAuth, app: App) -> AppUsers:
    async def unit(tx: Tx) -> AppUsers:
        total = await consent_store.count_app_users(tx, app.client_id)
        return AppUsers(total, await consent_store.users_of_app(tx, app.client_id, MAX_USERS_SHOWN))

    return await oauth.db.read_long(unit)


async def lock_app(tx: Tx, app: App, actor: Actor) -> App:
    """Lock the app until the transaction ends and return its latest state. The actor must still be its owner."""
    await _require_owner(tx, app.org_id, actor)
    latest = await store.lock(tx, app.client_id)
    if latest is None or (latest.owner_id, latest.org_id) != (app.owner_id, app.org_id):
        raise NotFound(_NOT_FOUND)
    return latest


async def _require_owner(tx: Tx, org_id: str | None, actor: Actor) -> None:
    if org_id is not None:
        await lock_organization_by_id_as_admin(tx, org_id, actor)
    elif actor.user_id is not None:
        await lock_account_and_credentials(tx, actor.user_id, actor.credentials_version)


async def record_audit(
    tx: Tx, app: App, kind: EntryType, text: str, actor: Actor, now: int, data: dict[str, Any] | None = None
) -> None:
    if app.org_id is not None:
        about = {"clientId": app.client_id, "name": app.name, **(data or {})}
        await record(tx, app.org_id, kind, text, actor, now, about)


def _new_secret() -> str:
    return f"hfcs_{secrets.token_urlsafe(32)}"
