"""OAuth requests: codes, device codes, refresh, revocation and token exchange, sent without the caller's token."""

import base64
import time
from collections.abc import Mapping, Sequence
from urllib.parse import quote, urlencode

from hubgate.client import responses
from hubgate.client.codec import decode
from hubgate.client.errors import ConnectionLost, SignInDenied, SignInExpired, SignInFailed, Unreachable
from hubgate.client.models import DeviceCode, Token
from hubgate.client.session import Call, Session
from hubgate.client.wire import Flow, Response, sleep

# Every hub knows this client without registration.
CLI_CLIENT_ID = "hubgate-cli"
USER_EMAIL = "urn:service:token-type:user-email"

_DEVICE = "urn:ietf:params:oauth:grant-type:device_code"
_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
_TOKEN_PATH = "/oauth/token"  # noqa: S105 (a path)
_SLOW_DOWN_SECONDS = 5.0
_MAX_INTERVAL = 60.0


def exchange_token(
    session: Session, client_id: str, client_secret: str, email: str, *, scopes: Sequence[str] | None = None
) -> Flow[Token]:
    """Get a token for a member of the app's organization, by e-mail address (RFC 8693)."""
    if not (client_id and client_secret and email):
        raise ValueError("client_id, client_secret and the e-mail address are required.")
    fields = {"grant_type": _EXCHANGE, "subject_token": email, "subject_token_type": USER_EMAIL}
    if scopes is not None:
        fields["scope"] = " ".join(scopes)
    return (yield from _request_token(session, _TOKEN_PATH, fields, basic=(client_id, client_secret)))


def refresh(session: Session, client_id: str, refresh_token: str) -> Flow[Token]:
    # A repeated request returns the same new tokens, so a retry after a lost response is safe.
    fields = {"grant_type": "refresh_token", "refresh_token": refresh_token, "client_id": client_id}
    return (yield from _request_token(session, _TOKEN_PATH, fields, repeatable=True))


def redeem_code(session: Session, client_id: str, code: str, redirect_uri: str, verifier: str) -> Flow[Token]:
    fields = {"grant_type": "authorization_code", "code": code, "redirect_uri": redirect_uri}
    # Not retried: a replayed code revokes the tokens of its first use.
    return (
        yield from _request_token(session, _TOKEN_PATH, {**fields, "code_verifier": verifier, "client_id": client_id})
    )


def revoke(session: Session, client_id: str, token: str) -> Flow[None]:
    yield from session.call(_form_call("/oauth/revoke", {"token": token, "client_id": client_id}, repeatable=True))


def request_device_code(session: Session, client_id: str, scopes: Sequence[str] | None) -> Flow[DeviceCode]:
    fields = {"client_id": client_id} | ({} if scopes is None else {"scope": " ".join(scopes)})
    response = yield from session.response(_form_call("/oauth/device", fields))
    _raise_for_error(session, response)
    return decode(DeviceCode, responses.json_of(response))


def poll_for_token(session: Session, client_id: str, code: DeviceCode) -> Flow[Token]:
    """Poll until the user has approved or denied the request (RFC 8628, section 3.5)."""
    deadline = time.monotonic() + min(max(code.expires_in, 1), 3600)
    interval = min(max(float(code.interval), 1.0), _MAX_INTERVAL)
    fields = {"grant_type": _DEVICE, "device_code": code.device_code, "client_id": client_id}
    while time.monotonic() < deadline:
        yield from sleep(interval)
        try:
            response = yield from session.response(_form_call(_TOKEN_PATH, fields))
        except (ConnectionLost, Unreachable):
            # The laptop was asleep, or the hub is restarting: the code is still valid.
            continue
        error, _ = responses.oauth_error(response)
        if error == "slow_down":
            interval = min(interval + _SLOW_DOWN_SECONDS, _MAX_INTERVAL)
        elif error != "authorization_pending" and response.status < 500:
            _raise_for_error(session, response)
            return decode(Token, responses.json_of(response))
    raise SignInExpired("The code was not used in time. Sign in again.", error="expired_token")


def _request_token(
    session: Session,
    path: str,
    fields: Mapping[str, str],
    *,
    basic: tuple[str, str] | None = None,
    repeatable: bool = False,
) -> Flow[Token]:
    response = yield from session.response(_form_call(path, fields, basic, repeatable=repeatable))
    _raise_for_error(session, response)
    return decode(Token, responses.json_of(response))


def _form_call(
    path: str, fields: Mapping[str, str], basic: tuple[str, str] | None = None, *, repeatable: bool = False
) -> Call:
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
    if basic is not None:
        # Both parts are form-encoded first (RFC 6749, section 2.3.1).
        pair = ":".join(quote(half, safe="") for half in basic)
        headers["Authorization"] = "Basic " + base64.b64encode(pair.encode()).decode()
    return Call("POST", path, headers=headers, body=urlencode(fields).encode(), send_token=False, repeatable=repeatable)


def _raise_for_error(session: Session, response: Response) -> None:
    if 200 <= response.status < 300:
        return
    error, description = responses.oauth_error(response)
    if not error or response.status >= 500 or response.status == 429:
        raise responses.refusal(response, session.clock())
    kinds = {"access_denied": SignInDenied, "expired_token": SignInExpired}
    texts = {
        "access_denied": "The sign-in was denied. Nothing was shared.",
        "expired_token": "The code was not used in time. Sign in again.",
    }
    text = texts.get(error) or (f"{error}: {description}" if description else error)
    raise kinds.get(error, SignInFailed)(text, error=error, description=description)
