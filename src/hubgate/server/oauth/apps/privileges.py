"""Privileges that only the operator grants: token exchange, and operator-defined scopes."""

from collections.abc import Sequence

from msgspec.structs import replace

from hubgate.server.accounts.organizations import store as org_store
from hubgate.server.audit.model import Actor, EntryType
from hubgate.server.audit.record import record
from hubgate.server.errors import Conflict, NotFound, Unprocessable
from hubgate.server.oauth.apps import store
from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.consent import store as consent_store
from hubgate.server.oauth.context import OAuth
from hubgate.server.oauth.tokens import store as token_store
from hubgate.server.paging import Page, PageRequest, page_of
from hubgate.server.scopes import SCOPE_NAMES
from hubgate.server.storage.database import Tx

PAGE_SIZE = 500
_NOT_FOUND = "App not found."


async def get(oauth: OAuth, client_id: str) -> App:
    app = await store.find(oauth.db, client_id)
    if app is None:
        raise NotFound(f"App {client_id} not found. List all apps with: hubgate admin app list")
    return app


async def list_all(oauth: OAuth) -> Sequence[App]:
    """All apps, ordered by client id."""

    async def unit(tx: Tx) -> list[App]:
        found: list[App] = []
        while True:
            apps = await store.list_all(tx, found[-1].client_id if found else "", PAGE_SIZE)
            found += apps
            if len(apps) < PAGE_SIZE:
                return found

    return await oauth.db.read_long(unit)


CURSOR = (str,)


async def list_privileged(oauth: OAuth, page: PageRequest) -> Page[App]:
    """Apps that may exchange tokens or have operator-defined scopes, ordered by client id."""
    found = await oauth.db.read_long(lambda tx: store.list_privileged(tx, page.last_shown(), page.fetch_limit))
    return page_of(found, page, lambda app: (app.client_id,))


async def set_exchange(oauth: OAuth, client_id: str, privileged: bool, actor: Actor) -> App:
    now = oauth.clock()
    return await oauth.db.write(lambda tx: set_exchange_in(tx, client_id, privileged, actor, now))


async def set_exchange_in(tx: Tx, client_id: str, privileged: bool, actor: Actor, now: int) -> App:
    """Grant or revoke token exchange. Revoking deletes live exchanged tokens too."""
    before = await _lock(tx, client_id)
    if privileged and before.org_id is None:
        whose = "registered itself" if before.self_registered else "belongs to a user"
        raise Conflict(f"{before.name} {whose}. Only an organization's app may exchange tokens.")
    if before.exchange.privileged is privileged:
        return before
    # Also on grant: a concurrent exchange may have read the privilege before its revocation committed.
    after = replace(before, exchange=replace(before.exchange.restarted(now), privileged=privileged))
    await store.update(tx, after)
    if privileged:
        await _record_audit(
            tx, after, EntryType.APP_GRANT_EXCHANGE, f"granted token exchange to the app {after.name}", actor, now
        )
    else:
        await token_store.revoke_exchanged(tx, client_id)
        what = f"revoked token exchange from the app {after.name}"
        await _record_audit(tx, after, EntryType.APP_REVOKE_EXCHANGE, what, actor, now)
    return after


async def grant_scope(oauth: OAuth, client_id: str, scope: str, actor: Actor) -> App:
    now = oauth.clock()
    check_extra_scope(oauth, scope)
    return await oauth.db.write(lambda tx: grant_scope_in(tx, client_id, scope, actor, now))


async def grant_scope_in(tx: Tx, client_id: str, scope: str, actor: Actor, now: int) -> App:
    before = await _lock(tx, client_id)
    if scope in before.extra_scopes:
        return before
    after = replace(before, extra_scopes=(*before.extra_scopes, scope))
    await store.update(tx, after)
    what = f"granted the scope {scope} to the app {after.name}"
    await _record_audit(tx, after, EntryType.APP_GRANT_SCOPE, what, actor, now, scope)
    return after


async def revoke_scope(oauth: OAuth, client_id: str, scope: str, actor: Actor) -> App:
    """Remove the scope from the app, from every consent and from every live exchanged token."""
    now = oauth.clock()

    async def unit(tx: Tx) -> App:
        before = await _lock(tx, client_id)
        if scope not in before.extra_scopes:
            raise Conflict(f"The operator has not granted the scope {scope[:60]} to {before.name}.")
        after = replace(
            before,
            scopes=_without(before.scopes, scope),
            required_scopes=_without(before.required_scopes, scope),
            extra_scopes=_without(before.extra_scopes, scope),
            exchange=replace(before.exchange, scopes=_exchange_scopes(before, scope)),
        )
        await store.update(tx, after)
        await consent_store.remove_scope(tx, client_id, scope)
        await token_store.remove_scope(tx, client_id, scope)
        what = f"revoked the scope {scope} from the app {after.name}"
        await _record_audit(tx, after, EntryType.APP_REVOKE_SCOPE, what, actor, now, scope)
        return after

    return await oauth.db.write(unit)


def check_extra_scope(oauth: OAuth, scope: str) -> None:
    """Raise Unprocessable unless the operator has defined the scope."""
    if scope in SCOPE_NAMES:
        raise Unprocessable(f"Every app may request {scope}. The app's owner can add it.")
    if scope not in [extra.name for extra in oauth.extra_scopes]:
        raise Unprocessable(f"This hub has no scope {scope[:60]}. Add it as [[extra_scopes]] to hubgate.toml first.")


def _exchange_scopes(app: App, removed: str) -> tuple[str, ...] | None:
    """The scopes allowed in token exchange, without `removed`.

    The last scope stays, without effect: an empty list would mean no limit.
    """
    allowed = app.exchange.scopes
    return allowed if allowed is None else _without(allowed, removed) or allowed


def _without(names: Sequence[str], removed: str) -> tuple[str, ...]:
    return tuple(name for name in names if name != removed)


async def _lock(tx: Tx, client_id: str) -> App:
    found = await store.find(tx, client_id)
    if found is not None and found.org_id is not None:
        # Lock the organization before the app, as changes by its admins do.
        await org_store.lock(tx, found.org_id)
    latest = await store.lock(tx, client_id)
    if latest is None:
        raise NotFound(_NOT_FOUND)
    return latest


async def _record_audit(tx: Tx, app: App, kind: EntryType, text: str, actor: Actor, now: int, scope: str = "") -> None:
    if app.org_id is not None:
        data = {"clientId": app.client_id, "name": app.name, **({"scope": scope} if scope else {})}
        await record(tx, app.org_id, kind, text, actor, now, data)
