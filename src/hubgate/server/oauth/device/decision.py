"""The user's decision in the browser: find the device by its user code, and approve or deny it."""

from msgspec import Struct

from hubgate.server.accounts.limits import network_of
from hubgate.server.accounts.model import Person
from hubgate.server.errors import HubError, NotFound, TooManyRequests
from hubgate.server.oauth.apps.lookup import find_app
from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.consent.approval import Selection, store_approval
from hubgate.server.oauth.consent.model import AccessRequest
from hubgate.server.oauth.context import OAuth
from hubgate.server.oauth.device import store
from hubgate.server.oauth.device.model import APPROVED, DENIED, Decision, DeviceCode
from hubgate.server.oauth.device.user_code import possible_macs, read_user_code
from hubgate.server.oauth.errors import OAuthError
from hubgate.server.oauth.requested_scopes import allowed_on, no_scopes_on_local, scopes_of
from hubgate.server.oauth.resource_names import is_local
from hubgate.server.oauth.resource_servers.lookup import find_servers, targets
from hubgate.server.scopes import parse_scopes
from hubgate.server.storage.database import ConstraintViolated, Tx
from hubgate.server.throttle.rate_limiter import Limit

# Only wrong codes stay counted; at the limit no code is looked up (attack O38).
WRONG_BY_USER = Limit("user code by user", 10, 15 * 60)
WRONG_BY_ADDRESS = Limit("user code by address", 50, 15 * 60)


class DeviceNotFound(NotFound):
    def __init__(self) -> None:
        super().__init__("This code is unknown or has expired. Start again on the device.")


class AlreadyDecided(DeviceNotFound):
    """The same user decided before: a double click shows the result again and does not count as a wrong guess."""

    def __init__(self, *, denied: bool) -> None:
        super().__init__()
        self.denied = denied


class PendingDevice(Struct, frozen=True):
    code: DeviceCode
    # As the device shows it.
    user_code: str
    access: AccessRequest


async def find_pending(oauth: OAuth, person: Person, typed: str, ip: str) -> PendingDevice:
    """Find a pending device.

    Raises DeviceNotFound for a wrong code, TooManyRequests after too many of them, and AlreadyDecided if this user has
    decided about the device before, and OAuthError if the request names servers that this user cannot combine, or
    has not registered.
    """
    user_code = read_user_code(typed)
    if user_code is None:
        # Not counted as a guess: no user code has this form.
        raise DeviceNotFound
    by_user = await oauth.limiter.take(WRONG_BY_USER, person.user.id)
    try:
        by_address = await oauth.limiter.take(WRONG_BY_ADDRESS, network_of(ip))
    except TooManyRequests:
        # No code was looked up, so the user's count is restored: others at this address must not lock the user out.
        await oauth.limiter.refund(by_user)
        raise
    found: PendingDevice | HubError
    try:
        found = await _find_pending(oauth, user_code, person.user.id, ip) or await _error(oauth, person, user_code)
    except OAuthError as error:
        # The code is right, but its request is not valid for this user.
        found = error
    if type(found) is DeviceNotFound:
        raise found
    for taken in (by_user, by_address):
        await oauth.limiter.refund(taken)
    if isinstance(found, HubError):
        raise found
    return found


async def _find_pending(oauth: OAuth, user_code: str, user_id: str, ip: str) -> PendingDevice | None:
    now = oauth.clock()
    for mac in possible_macs(user_code, oauth.secret):
        if code := await store.pending(oauth.db, mac, now):
            app = await find_app(oauth, code.client_id, caller=ip)
            if app is None:
                return None
            return PendingDevice(code, user_code, await _access(oauth, app, code, user_id))
    return None


async def _error(oauth: OAuth, person: Person, user_code: str) -> DeviceNotFound:
    for mac in possible_macs(user_code, oauth.secret):
        if state := await store.decided_by(oauth.db, mac, person.user.id):
            return AlreadyDecided(denied=state == DENIED)
    return DeviceNotFound()


async def _access(oauth: OAuth, app: App, code: DeviceCode, user_id: str) -> AccessRequest:
    """The requested access with the scopes that still exist: the operator may have revoked a scope since, the owner of
    a resource server may have removed one.
    """
    uris, names = code.resources.split(), parse_scopes(code.scopes)
    servers = await find_servers(oauth, uris, user_id)
    allowed = allowed_on(oauth, app, servers) if uris else scopes_of(oauth, app)
    left = tuple(name for name in names if name in allowed)
    if not left and any(map(is_local, uris)):
        # Which server runs on this user's computer is known only now.
        raise no_scopes_on_local()
    return AccessRequest(app, left, resources=targets(uris, servers), servers=servers)


async def approve(oauth: OAuth, device: PendingDevice, person: Person, ticked: Selection, auth_time: int) -> None:
    """Approve the device. Raises DeviceNotFound, and approves nothing, if it has been decided or has expired since."""
    now, resources = oauth.clock(), " ".join(device.access.resources)

    async def unit(tx: Tx) -> None:
        consent_id, approved = await store_approval(tx, device.access, person, ticked, now)
        decision = Decision(APPROVED, person.user.id, consent_id, " ".join(approved), resources, auth_time)
        if not await store.decide(tx, device.code.key, decision, now):
            raise DeviceNotFound

    try:
        await oauth.db.write(unit)
    except (ConstraintViolated, DeviceNotFound):
        raise await _error(oauth, person, device.user_code) from None


async def deny(oauth: OAuth, device: PendingDevice, person: Person, auth_time: int) -> None:
    code, now = device.code, oauth.clock()

    async def unit(tx: Tx) -> bool:
        decision = Decision(DENIED, person.user.id, None, code.scopes, code.resources, auth_time)
        return await store.decide(tx, code.key, decision, now)

    try:
        denied = await oauth.db.write(unit)
    except ConstraintViolated:
        # The account was deleted since the request began.
        denied = False
    if not denied:
        raise await _error(oauth, person, device.user_code)
