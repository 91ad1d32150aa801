"""grant_type=urn:ietf:params:oauth:grant-type:device_code (RFC 8628, section 3.4)."""

import secrets
from dataclasses import dataclass
from typing import Any

from hubgate.server.accounts import store as account_store
from hubgate.server.accounts.model import User
from hubgate.server.accounts.tokens.text import TokenKind, read_token
from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.consent import store as consent_store
from hubgate.server.oauth.device import store
from hubgate.server.oauth.device.model import APPROVED, CONSUMED, DENIED, SLOWER_BY, DeviceCode
from hubgate.server.oauth.errors import AuthorizationPending, OAuthError, invalid_grant, invalid_request, invalid_target
from hubgate.server.oauth.grants.request import GrantRequest
from hubgate.server.oauth.resource_indicators import PARAMETER as RESOURCE
from hubgate.server.oauth.resource_indicators import WIDER, narrowed, requested_resources
from hubgate.server.oauth.tokens import issuance, rotation
from hubgate.server.oauth.tokens.issuance import TAKEN_BACK, SignedIn, TokenDetails, scopes_left
from hubgate.server.storage.database import Tx

TYPE = "urn:ietf:params:oauth:grant-type:device_code"
PARAMETERS = {
    "device_code": "the one /oauth/device gave",
    "resource": "for which servers, some of those that were authorized (RFC 8707); without it, all of them",
}

_PENDING = "authorization_pending", "The user has not decided yet."
_UNKNOWN = "This hub gave this app no such device code, or it was used."


@dataclass(frozen=True)
class Granted:
    """The user's approval, without scopes that were revoked since."""

    user: User
    consent_id: str
    scopes: str
    resources: str
    auth_time: int


@dataclass(frozen=True)
class SignedInDevice:
    user: User
    scopes: str
    auth_time: int
    access_token: str
    refresh_token: str | None


async def grant(asking: GrantRequest) -> dict[str, Any]:
    oauth, app = asking.oauth, asking.app
    if app is None:
        raise invalid_request("client_id is missing.")
    read = read_token(asking.parameters.need("device_code"))
    if read is None or read[0] is not TokenKind.DEVICE:
        raise invalid_grant(_UNKNOWN)
    requested = requested_resources(asking.parameters.all(RESOURCE), oauth.base_url)
    key, now = read[1], oauth.clock()

    async def unit(tx: Tx) -> SignedInDevice | OAuthError:
        # The consent is locked first, as everywhere; None until the user has decided.
        consented = await consent_store.lock_behind(tx, store.TABLE, key)
        code = await store.lock(tx, key)
        if code is None or code.client_id != app.client_id:
            # A poll by another app does not increase the interval (attack O39).
            return invalid_grant(_UNKNOWN)
        if error := _final_error(code, now):
            return error
        if code.state != APPROVED:
            return await _record_poll(tx, code, now)
        if consented is None or code.user_id is None or code.consent_id is None or code.auth_time is None:
            # Approved after the consent was looked up: the next poll finds it.
            return AuthorizationPending(*_PENDING)
        user = await account_store.user(tx, code.user_id)
        if user is None or user.disabled_at is not None:
            return invalid_grant("The user's account is disabled.")
        scopes = scopes_left(code.scopes, consented)
        if scopes is None:
            return invalid_grant(TAKEN_BACK)
        resources = narrowed(code.resources, requested)
        if resources is None:
            return invalid_target(WIDER)
        if not await store.consume(tx, key):
            return invalid_grant(_UNKNOWN)
        granted = Granted(user, code.consent_id, scopes, code.resources, code.auth_time)
        return await _issue_tokens(tx, app, granted, resources, now)

    outcome = await oauth.db.write(unit)
    if isinstance(outcome, OAuthError):
        raise outcome
    return await issuance.answer(
        oauth,
        outcome.user,
        app.client_id,
        outcome.access_token,
        outcome.scopes,
        app.token_lifetime,
        refresh_token=outcome.refresh_token,
        signed_in=SignedIn(outcome.auth_time, None),
    )


def _final_error(code: DeviceCode, now: int) -> OAuthError | None:
    if code.state == CONSUMED:
        return invalid_grant(_UNKNOWN)
    if code.state == DENIED:
        return OAuthError("access_denied", "The user said no.")
    if code.expires_at <= now:
        return OAuthError("expired_token", "Nobody entered the code in time. Begin again.")
    return None


async def _record_poll(tx: Tx, code: DeviceCode, now: int) -> OAuthError:
    if not code.is_too_soon(now):
        await store.record_poll(tx, code.key, code.interval, now)
        return AuthorizationPending(*_PENDING)
    interval = code.interval + SLOWER_BY
    await store.record_poll(tx, code.key, interval, now)
    return AuthorizationPending("slow_down", f"Ask every {interval} seconds from now on.")


async def _issue_tokens(tx: Tx, app: App, granted: Granted, resources: str, now: int) -> SignedInDevice:
    """Create the tokens. `resources` are for the access token; the refresh token gets all authorized ones."""
    user, consent_id, scopes, auth_time = granted.user, granted.consent_id, granted.scopes, granted.auth_time
    family = secrets.token_hex(12)
    refresh_token = None
    if app.refresh_tokens:
        refresh_token, _ = await rotation.add_first(
            tx, app.client_id, user.id, consent_id, scopes, granted.resources, auth_time, family, now
        )
    wanted = TokenDetails(
        client_id=app.client_id,
        user_id=user.id,
        consent_id=consent_id,
        org_id=None,
        scopes=scopes,
        family=family,
        supersedes=None,
        lifetime=app.token_lifetime,
        resources=resources,
    )
    access_token = await issuance.add_access_token(tx, wanted, now)
    return SignedInDevice(user, scopes, auth_time, access_token, refresh_token)
