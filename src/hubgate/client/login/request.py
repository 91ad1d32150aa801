"""Builds the authorization request and checks its response: PKCE, state and issuer (RFC 7636, 6749, 9207). No I/O."""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlencode

from hubgate.client.errors import SignInDenied, SignInFailed, UnexpectedResponse
from hubgate.client.responses import sanitized


@dataclass(frozen=True)
class AuthorizationRequest:
    url: str
    redirect_uri: str
    state: str = field(repr=False)
    verifier: str = field(repr=False)


def authorization_request(
    endpoint: str, client_id: str, redirect_uri: str, scopes: Sequence[str]
) -> AuthorizationRequest:
    state, verifier = secrets.token_urlsafe(32), secrets.token_urlsafe(48)
    challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")
    query = {
        "response_type": "code",
        "client_id": client_id,
        "redirect_uri": redirect_uri,
        "scope": " ".join(scopes),
        "state": state,
        "code_challenge": challenge,
        "code_challenge_method": "S256",
    }
    return AuthorizationRequest(f"{endpoint}/oauth/authorize?{urlencode(query)}", redirect_uri, state, verifier)


def has_state(query: str, state: str) -> bool:
    """Whether a redirect has our state. Any web page can send a browser to the loopback port."""
    given = parse_qs(query, keep_blank_values=True).get("state", [])
    return len(given) == 1 and hmac.compare_digest(given[0].encode(), state.encode())


def code_from(query: str, request: AuthorizationRequest, endpoint: str) -> str:
    fields = parse_qs(query, keep_blank_values=True)
    if not has_state(query, request.state):
        raise UnexpectedResponse("The state of the sign-in does not match. Sign in again.")
    if fields.get("iss", [endpoint]) != [endpoint]:
        # Mix-up attack: a code from another server (RFC 9207, section 2.4).
        raise UnexpectedResponse("The response to the sign-in is from another hub. Sign in again.")
    if "error" in fields:
        error = sanitized(fields["error"][0], 60)
        if error == "access_denied":
            raise SignInDenied("The sign-in was denied. Nothing was shared.", error=error)
        description = sanitized(fields.get("error_description", [""])[0])
        raise SignInFailed(f"{error}: {description}" if description else error, error=error, description=description)
    code = fields.get("code", [])
    if len(code) != 1 or not code[0]:
        raise UnexpectedResponse("The hub's response to the sign-in has no code. Sign in again.")
    return code[0]
