"""Which app is calling, and the proof of it (RFC 6749, section 2.3): Basic, a secret in the body, or the id alone."""

import base64
from dataclasses import dataclass
from urllib.parse import unquote_plus

from hubgate.server.accounts.limits import network_of
from hubgate.server.http.request import HubRequest
from hubgate.server.oauth.apps import store
from hubgate.server.oauth.apps.finding import find_app
from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.cimd.documents import DocumentRefused
from hubgate.server.oauth.context import OAuth
from hubgate.server.oauth.errors import ClientRefused, invalid_request
from hubgate.server.oauth.parameters import Parameters
from hubgate.server.secret import fingerprint
from hubgate.server.throttle.limiter import Limit

# By address and app together, so that a stranger's wrong guesses do not lock the app itself out.
FAILED_AUTHENTICATIONS = Limit("client authentication", 100, 15 * 60)


@dataclass(frozen=True)
class Presented:
    """What a request says about its client. `secret` is None where it claims to be public."""

    client_id: str
    secret: str | None
    basic: bool
    # The same header read without form-decoding, which some clients leave out.
    raw: tuple[str, str] | None = None


def presented(request: HubRequest, parameters: Parameters) -> Presented | None:
    """None where the request names no client at all."""
    header = request.headers.get("authorization")
    body_id, body_secret = parameters.get("client_id"), parameters.get("client_secret")
    if header is None:
        if body_id is None:
            if body_secret is not None:
                raise invalid_request("client_secret came without client_id.")
            return None
        return Presented(body_id, body_secret, basic=False)
    scheme, _, value = header.partition(" ")
    if scheme.lower() != "basic":
        raise ClientRefused(
            "Authenticate with Basic, with client_id and client_secret in the body, or not at all.", basic=True
        )
    if body_secret is not None:
        # Two proofs: whichever we picked, somebody else might pick the other (attack O18).
        raise invalid_request("Send the secret once: in the Authorization header or in the body.")
    try:
        name, colon, password = base64.b64decode(value.strip(), validate=True).decode().partition(":")
    except ValueError:
        raise ClientRefused("The Authorization header is not Basic credentials.", basic=True) from None
    if not colon:
        raise ClientRefused("The Authorization header is not Basic credentials.", basic=True)
    found = Presented(unquote_plus(name), unquote_plus(password), basic=True, raw=(name, password))
    if body_id is not None and body_id not in (found.client_id, name):
        raise invalid_request("client_id in the body is not the one in the Authorization header.", "client_id")
    return found


async def authenticate(oauth: OAuth, given: Presented, ip: str) -> App:
    """The app, proven to be what it says. A public one proves nothing here: its code or device does.

    A right secret is good however many wrong ones came before: who guesses a secret of 256 bits is not stopped by
    counting, and an app that shares an address with a broken one must go on.
    """
    app = await (_proven(oauth, given) if given.secret else _public(oauth, given, ip))
    if app is None:
        await oauth.limiter.take(FAILED_AUTHENTICATIONS, f"{network_of(ip)} {given.client_id}")
        raise ClientRefused(basic=given.basic)
    return app


async def _proven(oauth: OAuth, given: Presented) -> App | None:
    pairs = dict.fromkeys([(given.client_id, given.secret), *([given.raw] if given.raw else [])])
    for client_id, secret in pairs:
        # PostgreSQL cannot even look for a NUL.
        if secret and "\0" not in client_id:
            key = fingerprint(secret)
            if app := await store.find_with_secret(oauth.db, client_id, key, oauth.clock()):
                return app
    return None


async def _public(oauth: OAuth, given: Presented, ip: str) -> App | None:
    app = await find_client(oauth, given.client_id, ip, basic=given.basic)
    return app if app is not None and not app.confidential else None


async def find_client(oauth: OAuth, client_id: str, ip: str, *, basic: bool = False) -> App | None:
    """As `find_app`; an app whose document is no good is a client that did not prove itself (RFC 6749, section 5.2)."""
    try:
        return await find_app(oauth, client_id, caller=ip)
    except DocumentRefused as error:
        raise ClientRefused(error.message, basic=basic) from error
