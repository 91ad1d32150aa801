"""Management of resource servers by their owner: register, change, replace the secret, delete.

A change locks the server and is applied to its latest state. A change by an admin who has since been demoted is
rejected.
"""

import secrets
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import urlsplit

from msgspec.structs import replace

from hubgate.server.accounts import store as account_store
from hubgate.server.accounts.account_locks import lock_account_and_credentials
from hubgate.server.accounts.model import Owner
from hubgate.server.accounts.organizations.locks import lock_organization_by_id_as_admin
from hubgate.server.accounts.single_use_forms import VerifiedNonce, consume_nonce
from hubgate.server.audit.model import Actor, EntryType
from hubgate.server.audit.record import record
from hubgate.server.clock import SECOND
from hubgate.server.errors import FieldErrors, NotFound
from hubgate.server.ids import new_id
from hubgate.server.oauth.apps.management import MAX_SECRETS
from hubgate.server.oauth.apps.model import LONGEST_OVERLAP
from hubgate.server.oauth.context import OAuth
from hubgate.server.oauth.resource_names import is_local
from hubgate.server.oauth.resource_servers import store
from hubgate.server.oauth.resource_servers.fields import validate_server
from hubgate.server.oauth.resource_servers.model import ResourceServer
from hubgate.server.secret import fingerprint
from hubgate.server.storage.database import Tx

MAX_SERVERS = 100
SECRET_PREFIX = "hfrs_"  # noqa: S105 (the beginning of every secret)
NOT_FOUND = "Resource server not found."
_TAKEN = "You have registered this identifier already."
_TAKEN_BY_OTHER = (
    "This identifier belongs to another owner. Choose another address, or delete the other registration first."
)
_HTTP = "Use https: without it, control of this address cannot be proved. http is for localhost, 127.0.0.1 and [::1]."
_LOCAL_OF_ORGANIZATION = (
    "A server on this computer is valid only for tokens of its owner, which an organization does not have. "
    "Register it in your own settings."
)


async def create(
    oauth: OAuth, owner: Owner, draft: ResourceServer, actor: Actor, nonce: VerifiedNonce | None = None
) -> tuple[ResourceServer, str]:
    """Register a resource server; returns it with its secret, which is not stored.

    With `nonce`, sending the same form twice raises AlreadyUsed.
    """
    return await _add(oauth, owner, draft, actor, nonce, _address_error(owner, draft, http=False))


async def create_vouched(oauth: OAuth, owner: Owner, draft: ResourceServer, actor: Actor) -> tuple[ResourceServer, str]:
    """Register a resource server for which the operator vouches: no proof is required, and http is allowed."""
    is_on_this_computer = is_local(draft.identifier)
    vouched = replace(draft, verified_at=None if is_on_this_computer else oauth.clock())
    return await _add(oauth, owner, vouched, actor, None, _address_error(owner, draft, http=True))


def _address_error(owner: Owner, draft: ResourceServer, *, http: bool) -> str:
    """Why this owner cannot register the identifier; empty if the owner can."""
    given = draft.identifier.strip()
    if is_local(given):
        return "" if owner.org_id is None else _LOCAL_OF_ORGANIZATION
    return _HTTP if not http and given.lower().startswith("http://") else ""


async def _add(
    oauth: OAuth,
    owner: Owner,
    draft: ResourceServer,
    actor: Actor,
    nonce: VerifiedNonce | None,
    address_error: str,
) -> tuple[ResourceServer, str]:
    now, secret = oauth.clock(), _new_secret()
    server = replace(
        draft,
        id=new_id(now),
        owner_id=owner.user_id,
        org_id=owner.org_id,
        challenge="" if draft.verified_at is not None else _new_challenge(oauth.base_url),
        created_at=now,
    )
    server = _validated(oauth, server, address_error)

    async def unit(tx: Tx) -> None:
        await _require_owner(tx, owner.org_id, actor)
        if nonce is not None:
            await consume_nonce(tx, nonce)
        if await store.count_of_owner(tx, owner.user_id, owner.org_id) >= MAX_SERVERS:
            raise FieldErrors({"name": f"At most {MAX_SERVERS} resource servers. Delete one first."})
        if not await store.add(tx, server):
            own = await store.of_owner(tx, owner.user_id, owner.org_id)
            text = _TAKEN if any(each.uri == server.uri for each in own) else _TAKEN_BY_OTHER
            raise FieldErrors({"identifier": text})
        await store.add_secret(tx, server.id, fingerprint(secret), now)
        await record_audit(tx, server, EntryType.RESOURCE_CREATE, "registered", actor, now)

    await oauth.db.write(unit)
    return server, secret


async def of_owner(oauth: OAuth, owner: Owner) -> Sequence[ResourceServer]:
    """The owner's resource servers, oldest first."""
    return await oauth.db.read_long(lambda tx: store.of_owner(tx, owner.user_id, owner.org_id))


async def get(oauth: OAuth, owner: Owner, server_id: str) -> ResourceServer:
    """The owner's resource server; NotFound also for one of another owner."""
    server = await store.find(oauth.db, server_id)
    if server is None or (server.owner_id, server.org_id) != (owner.user_id, owner.org_id):
        raise NotFound(NOT_FOUND)
    return server


async def owner_name(oauth: OAuth, server: ResourceServer) -> str:
    """The owner as @name."""
    if server.owner_id is not None:
        user = await account_store.user(oauth.db, server.owner_id)
        return f"@{user.name}" if user else ""
    organization = await account_store.organization(oauth.db, server.org_id or "")
    return f"@{organization.name}" if organization else ""


async def owner_is_disabled(oauth: OAuth, server: ResourceServer) -> bool:
    """Whether the operator disabled the account of the owner; organizations cannot be disabled."""
    user = await account_store.user(oauth.db, server.owner_id) if server.owner_id is not None else None
    return user is not None and user.disabled_at is not None


async def update(
    oauth: OAuth, server: ResourceServer, change: Callable[[ResourceServer], ResourceServer], actor: Actor
) -> ResourceServer:
    """Change name, scopes or token format. Live tokens lose a removed scope at the next introspection."""
    now = oauth.clock()

    async def unit(tx: Tx) -> ResourceServer:
        before = await lock_server(tx, server, actor)
        after = _validated(oauth, change(before))
        changed = [name for name in ("name", "scopes", "tokens") if getattr(before, name) != getattr(after, name)]
        if changed:
            await store.update(tx, after)
            await record_audit(tx, after, EntryType.RESOURCE_UPDATE, "changed", actor, now, {"changed": changed})
        return after

    return await oauth.db.write(unit)


async def refresh_secret(
    oauth: OAuth, server: ResourceServer, overlap: int, actor: Actor, nonce: VerifiedNonce | None = None
) -> str:
    """Create a new secret; old secrets expire in `overlap` seconds."""
    if not 0 <= overlap <= LONGEST_OVERLAP:
        raise FieldErrors({"overlapSeconds": f"overlapSeconds must be 0 to {LONGEST_OVERLAP:,} seconds."})
    now, secret = oauth.clock(), _new_secret()

    async def unit(tx: Tx) -> None:
        before = await lock_server(tx, server, actor)
        if nonce is not None:
            await consume_nonce(tx, nonce)
        await store.expire_secrets(tx, server.id, now + overlap * SECOND)
        if len(await store.old_secrets(tx, server.id, now)) >= MAX_SECRETS:
            text = f"{MAX_SECRETS} secrets are still valid. Refresh without an overlap."
            raise FieldErrors({"overlapSeconds": text})
        await store.add_secret(tx, server.id, fingerprint(secret), now)
        about = {"overlapSeconds": overlap}
        await record_audit(tx, before, EntryType.RESOURCE_REFRESH_SECRET, "created a new secret for", actor, now, about)

    await oauth.db.write(unit)
    return secret


async def old_secrets(oauth: OAuth, server: ResourceServer) -> Sequence[int]:
    """When each replaced secret expires that is still valid, the soonest first."""
    now = oauth.clock()
    return await oauth.db.read(lambda tx: store.old_secrets(tx, server.id, now))


async def delete(oauth: OAuth, server: ResourceServer, actor: Actor) -> None:
    """Delete a resource server. Its tokens cannot be introspected or refreshed any more."""
    now = oauth.clock()

    async def unit(tx: Tx) -> None:
        await delete_locked(tx, await lock_server(tx, server, actor), actor, now)

    await oauth.db.write(unit)


async def delete_locked(tx: Tx, server: ResourceServer, actor: Actor, now: int, reason: str = "") -> None:
    """Delete a server whose owner the caller's transaction has locked. `reason` is for a deletion that no owner
    requested.
    """
    await store.remove(tx, server.id)
    data = {"reason": reason} if reason else None
    await record_audit(tx, server, EntryType.RESOURCE_DELETE, "deleted", actor, now, data)


async def lock_server(tx: Tx, server: ResourceServer, actor: Actor) -> ResourceServer:
    """Lock the server until the transaction ends and return its latest state. The actor must still be its owner."""
    await _require_owner(tx, server.org_id, actor)
    latest = await store.lock(tx, server.id)
    if latest is None:
        raise NotFound(NOT_FOUND)
    return latest


async def record_audit(
    tx: Tx,
    server: ResourceServer,
    kind: EntryType,
    verb: str,
    actor: Actor,
    now: int,
    data: dict[str, Any] | None = None,
) -> None:
    if server.org_id is not None:
        about = {"id": server.id, "identifier": server.identifier, "name": server.name, **(data or {})}
        await record(tx, server.org_id, kind, f"{verb} the resource server {server.name}", actor, now, about)


async def _require_owner(tx: Tx, org_id: str | None, actor: Actor) -> None:
    if org_id is not None:
        await lock_organization_by_id_as_admin(tx, org_id, actor)
    elif actor.user_id is not None:
        await lock_account_and_credentials(tx, actor.user_id, actor.credentials_version)


def _validated(oauth: OAuth, server: ResourceServer, address_error: str = "") -> ResourceServer:
    return validate_server(server, oauth.base_url, [extra.name for extra in oauth.extra_scopes], address_error)


def _new_challenge(base_url: str) -> str:
    """Names this hub: another hub could show its users, as its own, a challenge that it got here for their server."""
    return f"{urlsplit(base_url).netloc}:{secrets.token_urlsafe(24)}"


def _new_secret() -> str:
    return f"{SECRET_PREFIX}{secrets.token_urlsafe(32)}"
