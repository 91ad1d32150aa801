"""grant_type=urn:ietf:params:oauth:grant-type:device_code (RFC 8628, section 3.4)."""

import secrets
from dataclasses import dataclass
from typing import Any

from hubgate.server.accounts import store as account_store
from hubgate.server.accounts.tokens.text import TokenKind
from hubgate.server.oauth.device import store
from hubgate.server.oauth.device.model import APPROVED, CONSUMED, DENIED, SLOW_DOWN_SECONDS, DeviceCode
from hubgate.server.oauth.errors import AuthorizationPending, OAuthError, invalid_grant
from hubgate.server.oauth.grants.pipeline import RESOURCE_TEXT, Authorization, Grant, GrantRequest, UserGrant, issue
from hubgate.server.storage.database import Database, Tx

_UNKNOWN = "Unknown device code for this app, or it was already used."


async def answer(request: GrantRequest) -> dict[str, Any]:
    app = request.client
    return await issue(request, DeviceGrant(app, request.key_of("device_code", TokenKind.DEVICE, _UNKNOWN)))


@dataclass(frozen=True)
class DeviceGrant(UserGrant):
    table = store.TABLE

    async def early_error(self, db: Database, now: int) -> OAuthError | None:
        return _pending() if await store.poll_in_time(db, self.key, self.app.client_id, now) else None

    async def find(self, tx: Tx, now: int) -> Authorization | OAuthError:
        code = await store.lock(tx, self.key)
        if code is None or code.client_id != self.app.client_id or code.state == CONSUMED:
            # A poll by another app does not increase the interval (attack O39).
            return invalid_grant(_UNKNOWN)
        if code.state == DENIED:
            return OAuthError("access_denied", "The user denied the request.")
        if code.expires_at <= now:
            return OAuthError("expired_token", "The code expired before it was used. Start again.")
        if code.state != APPROVED or code.user_id is None or code.consent_id is None or code.auth_time is None:
            return await _record_poll(tx, code, now)
        user = await account_store.user(tx, code.user_id)
        if user is None:
            return invalid_grant(_UNKNOWN)
        family = secrets.token_hex(12)
        return Authorization(user, code.consent_id, code.scopes, code.resources, code.auth_time, family)

    def missing_consent_error(self) -> OAuthError:
        # Approved after the consent was looked up: the next poll finds it.
        return _pending()

    async def consume(self, tx: Tx, _found: Authorization, _now: int) -> OAuthError | None:
        return None if await store.consume(tx, self.key) else invalid_grant(_UNKNOWN)


def _pending() -> OAuthError:
    return AuthorizationPending("authorization_pending", "The user has not decided yet.")


async def _record_poll(tx: Tx, code: DeviceCode, now: int) -> OAuthError:
    if not code.is_too_soon(now):
        await store.record_poll(tx, code.key, code.interval, now)
        return _pending()
    interval = code.interval + SLOW_DOWN_SECONDS
    await store.record_poll(tx, code.key, interval, now)
    return AuthorizationPending("slow_down", f"Poll every {interval} seconds from now on.")


GRANT = Grant(
    type="urn:ietf:params:oauth:grant-type:device_code",
    parameters={"device_code": "from the response to /oauth/device", "resource": RESOURCE_TEXT},
    answer=answer,
)
