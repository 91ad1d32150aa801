"""grant_type=authorization_code (RFC 6749 section 4.1.3, RFC 7636 section 4.5)."""

from dataclasses import dataclass, replace
from typing import Any

from hubgate.server.accounts.model import User
from hubgate.server.accounts.tokens.text import TokenKind, read_token
from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.client_auth import find_client
from hubgate.server.oauth.consent import store as consent_store
from hubgate.server.oauth.errors import InvalidClient, OAuthError, invalid_grant, invalid_request, invalid_target
from hubgate.server.oauth.grants.request import GrantRequest
from hubgate.server.oauth.pkce import is_verifier, verifier_matches
from hubgate.server.oauth.resource_indicators import PARAMETER as RESOURCE
from hubgate.server.oauth.resource_indicators import WIDER, narrowed, requested_resources
from hubgate.server.oauth.tokens import issuance, rotation, store
from hubgate.server.oauth.tokens.issuance import TAKEN_BACK, SignedIn, TokenDetails, scopes_left
from hubgate.server.oauth.tokens.model import Code
from hubgate.server.storage.database import Tx

TYPE = "authorization_code"
PARAMETERS = {
    "code": "the one the user brought back",
    "redirect_uri": "as in the authorization request; left out only where it was left out there",
    "code_verifier": "where the code was asked for with a code_challenge",
    "resource": "for which servers, some of those that were authorized (RFC 8707); without it, all of them",
}
_VERIFIER = "code_verifier"

_UNKNOWN = "This hub gave out no such code, or more than ten minutes ago."
_EXPIRED = "This code is older than a minute. Send the user to sign in again, then redeem at once."
_USED = (
    "This code was redeemed before. The tokens from it were ended too: "
    "redeem once, then redirect away from the callback."
)


@dataclass(frozen=True)
class Redeemed:
    code: Code
    user: User
    access_token: str
    refresh_token: str | None


async def grant(asking: GrantRequest) -> dict[str, Any]:
    oauth, parameters = asking.oauth, asking.parameters
    read = read_token(parameters.need("code"))
    if read is None or read[0] is not TokenKind.CODE:
        raise invalid_grant(_UNKNOWN)
    app = asking.app or await _public_app_of(asking, read[1])
    requested = requested_resources(parameters.all(RESOURCE), oauth.base_url)
    verifier = parameters.get("code_verifier")
    redirect_uri = parameters.get("redirect_uri")
    now = oauth.clock()

    async def unit(tx: Tx) -> Redeemed | OAuthError:
        consented = await consent_store.lock_behind(tx, store.CODES, read[1])
        found = await store.code_with_user(tx, read[1])
        if consented is None or found is None:
            return invalid_grant(_UNKNOWN)
        code, user = found
        if error := _validate(code, app, verifier, redirect_uri, now):
            # A request that a stranger could have sent must not revoke anything (attack O13).
            return error
        resources = narrowed(code.resources, requested)
        if resources is None:
            return invalid_target(WIDER)
        if not await store.redeem(tx, code.key, now):
            # A replay with a valid proof: either this sender or the first one stole the code (O12).
            await store.end_family(tx, code.family)
            return invalid_grant(_USED)
        if user.disabled_at is not None:
            return invalid_grant("The user's account is disabled.")
        left = scopes_left(code.scopes, consented)
        if left is None:
            return invalid_grant(TAKEN_BACK)
        return await _issue_tokens(tx, app, replace(code, scopes=left), user, resources, now)

    outcome = await oauth.db.write(unit)
    if isinstance(outcome, OAuthError):
        raise outcome
    code = outcome.code
    return await issuance.answer(
        oauth,
        outcome.user,
        app.client_id,
        outcome.access_token,
        code.scopes,
        app.token_lifetime,
        refresh_token=outcome.refresh_token,
        signed_in=SignedIn(code.auth_time, code.nonce),
    )


def _validate(code: Code, app: App, verifier: str | None, redirect_uri: str | None, now: int) -> OAuthError | None:
    if code.client_id != app.client_id:
        return invalid_grant("The code was given to another app.")
    if code.redeemed_at is None and code.expires_at <= now:
        return invalid_grant(_EXPIRED)
    # May be absent only if the authorization request had none (RFC 6749, section 4.1.3).
    if redirect_uri != code.redirect_uri and (redirect_uri is not None or code.redirect_uri_sent):
        return invalid_grant("redirect_uri is not the one the code was asked for with.", "redirect_uri")
    if code.challenge is None:
        # A verifier without a challenge: the authorization request was modified (RFC 9700, section 4.8; attack O10).
        # A public app needs PKCE: its secret may have been deleted after the code was issued (attack O20).
        rejected = verifier is not None or not app.confidential
        return invalid_grant("The code was asked for without PKCE.", _VERIFIER) if rejected else None
    if verifier is None:
        return invalid_grant("code_verifier is missing.", _VERIFIER)
    if not is_verifier(verifier):
        return invalid_grant("code_verifier has 43 to 128 unreserved characters.", _VERIFIER)
    if not verifier_matches(verifier, code.challenge):
        return invalid_grant("code_verifier does not fit code_challenge.", _VERIFIER)
    return None


async def _public_app_of(asking: GrantRequest, key: bytes) -> App:
    """The public app of a code, for a request without client_id, as a browser library sends it; PKCE is the proof."""
    code = await store.code(asking.oauth.db, key)
    if code is None:
        raise invalid_grant(_UNKNOWN)
    app = await find_client(asking.oauth, code.client_id, asking.visitor.ip)
    if app is None or app.confidential:
        raise InvalidClient("This app has a secret. Authenticate with it.", basic=False, about="client_id")
    if code.challenge is None:
        raise invalid_request("client_id is missing.")
    return app


async def _issue_tokens(tx: Tx, app: App, code: Code, user: User, resources: str, now: int) -> Redeemed:
    """Create the tokens. `resources` are for the access token; the refresh token gets all authorized ones."""
    refresh_token = None
    if app.refresh_tokens:
        refresh_token, _ = await rotation.add_first(
            tx, app.client_id, user.id, code.consent_id, code.scopes, code.resources, code.auth_time, code.family, now
        )
    wanted = TokenDetails(
        client_id=app.client_id,
        user_id=user.id,
        consent_id=code.consent_id,
        org_id=None,
        scopes=code.scopes,
        family=code.family,
        supersedes=None,
        lifetime=app.token_lifetime,
        resources=resources,
    )
    return Redeemed(code, user, await issuance.add_access_token(tx, wanted, now), refresh_token)
