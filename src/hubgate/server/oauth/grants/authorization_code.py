"""grant_type=authorization_code (RFC 6749 section 4.1.3, RFC 7636 section 4.5)."""

from dataclasses import dataclass
from typing import Any

from hubgate.server.accounts.tokens.text import TokenKind
from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.client_auth import find_client
from hubgate.server.oauth.errors import InvalidClient, OAuthError, invalid_grant, invalid_request
from hubgate.server.oauth.grants.pipeline import RESOURCE_TEXT, Authorization, Grant, GrantRequest, UserGrant, issue
from hubgate.server.oauth.pkce import is_verifier, verifier_matches
from hubgate.server.oauth.tokens import store
from hubgate.server.oauth.tokens.model import Code
from hubgate.server.storage.database import Tx

_VERIFIER = "code_verifier"

_UNKNOWN = "Unknown code, or it expired more than ten minutes ago."
_EXPIRED = "This code expired after one minute. Send the user to sign in again and redeem the code at once."
_USED = (
    "This code was already redeemed, so its tokens were revoked. "
    "Redeem a code once, then redirect away from the callback."
)


async def answer(request: GrantRequest) -> dict[str, Any]:
    key = request.key_of("code", TokenKind.CODE, _UNKNOWN)
    app = request.app or await _public_app_of(request, key)
    verifier, redirect_uri = request.parameters.get(_VERIFIER), request.parameters.get("redirect_uri")
    return await issue(request, CodeGrant(app, key, verifier=verifier, redirect_uri=redirect_uri))


@dataclass(frozen=True)
class CodeGrant(UserGrant):
    table = store.CODES
    verifier: str | None = None
    redirect_uri: str | None = None

    async def find(self, tx: Tx, now: int) -> Authorization | OAuthError:
        found = await store.code_with_user(tx, self.key)
        if found is None:
            return self.missing_consent_error()
        code, user = found
        if error := self._validate(code, now):
            # A request that a stranger could have sent must not revoke anything (attack O13).
            return error
        return Authorization(
            user,
            code.consent_id,
            code.scopes,
            code.resources,
            code.auth_time,
            code.family,
            nonce=code.nonce,
            claims=code.claims,
        )

    def missing_consent_error(self) -> OAuthError:
        return invalid_grant(_UNKNOWN)

    async def consume(self, tx: Tx, found: Authorization, now: int) -> OAuthError | None:
        if await store.redeem(tx, self.key, now):
            return None
        # A replay with a valid proof: either this sender or the first one stole the code (attack O12).
        await store.revoke_family(tx, found.family)
        return invalid_grant(_USED)

    def _validate(self, code: Code, now: int) -> OAuthError | None:
        verifier, redirect_uri = self.verifier, self.redirect_uri
        if code.client_id != self.app.client_id:
            return invalid_grant("The code was issued to another app.")
        if code.redeemed_at is None and code.expires_at <= now:
            return invalid_grant(_EXPIRED)
        # May be absent only if the authorization request had none (RFC 6749, section 4.1.3).
        if redirect_uri != code.redirect_uri and (redirect_uri is not None or code.redirect_uri_sent):
            return invalid_grant("redirect_uri is not the one in the authorization request.", "redirect_uri")
        if code.challenge is None:
            # A verifier without a challenge: the authorization request was modified (RFC 9700, section 4.8; attack
            # O10). A public app needs PKCE: its secret may have been deleted after the code was issued (attack O20).
            rejected = verifier is not None or not self.app.confidential
            return invalid_grant("The code was requested without PKCE.", _VERIFIER) if rejected else None
        if verifier is None:
            return invalid_grant("code_verifier is missing.", _VERIFIER)
        if not is_verifier(verifier):
            return invalid_grant("code_verifier must have 43 to 128 unreserved characters.", _VERIFIER)
        if not verifier_matches(verifier, code.challenge):
            return invalid_grant("code_verifier does not match code_challenge.", _VERIFIER)
        return None


async def _public_app_of(request: GrantRequest, key: bytes) -> App:
    """The public app of a code, for a request without client_id, as a browser library sends it; PKCE is the proof."""
    code = await store.code(request.oauth.db, key)
    if code is None:
        raise invalid_grant(_UNKNOWN)
    app = await find_client(request.oauth, code.client_id, request.visitor.ip)
    if app is None or app.confidential:
        raise InvalidClient("This app has a secret. Authenticate with it.", basic=False, about="client_id")
    if code.challenge is None:
        raise invalid_request("client_id is missing.")
    return app


GRANT = Grant(
    type="authorization_code",
    parameters={
        "code": "from the redirect to the app",
        "redirect_uri": "as in the authorization request; may be omitted only if it was omitted there",
        "code_verifier": "if the code was requested with a code_challenge",
        "resource": RESOURCE_TEXT,
    },
    answer=answer,
)
