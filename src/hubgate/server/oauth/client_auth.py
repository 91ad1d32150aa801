"""Client authentication (RFC 6749, section 2.3): Basic, a secret in the body, or the client id alone."""

import base64
from collections.abc import Awaitable, Callable
from typing import TypeVar
from urllib.parse import unquote_plus

from msgspec import Struct

from hubgate.server.accounts.limits import network_of
from hubgate.server.http.request import HubRequest
from hubgate.server.oauth.apps import store
from hubgate.server.oauth.apps.lookup import find_app
from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.cimd.documents import InvalidDocument
from hubgate.server.oauth.context import OAuth
from hubgate.server.oauth.errors import InvalidClient, invalid_request
from hubgate.server.oauth.parameters import Parameters
from hubgate.server.secret import fingerprint
from hubgate.server.throttle.rate_limiter import Limit

T = TypeVar("T")
# A look-up by client id and the fingerprint of a secret.
Find = Callable[[str, bytes], Awaitable[T | None]]

# Counted per network and app, so that a stranger's wrong guesses do not lock the app out.
FAILED_AUTHENTICATIONS = Limit("client authentication", 100, 15 * 60)


class ClientCredentials(Struct, frozen=True):
    """The client credentials in a request. `secret` is None if the client claims to be public."""

    client_id: str
    secret: str | None
    basic: bool
    # The header's id and secret without form-decoding: some clients do not form-encode them.
    raw: tuple[str, str] | None = None


def client_credentials(request: HubRequest, parameters: Parameters) -> ClientCredentials | None:
    """Read the client credentials; None if the request does not name a client."""
    header = request.headers.get("authorization")
    body_id, body_secret = parameters.get("client_id"), parameters.get("client_secret")
    if header is None:
        if body_id is None:
            if body_secret is not None:
                raise invalid_request("client_secret was sent without client_id.")
            return None
        return ClientCredentials(body_id, body_secret, basic=False)
    scheme, _, value = header.partition(" ")
    if scheme.lower() != "basic":
        raise InvalidClient(
            "Authenticate with Basic, or send client_id and client_secret in the body; a public app, only client_id.",
            basic=True,
            about="client_id",
        )
    if body_secret is not None:
        # With two secrets, a proxy and this hub could check different ones (attack O18).
        raise invalid_request("Send the secret once: in the Authorization header or in the body.")
    try:
        name, colon, password = base64.b64decode(value.strip(), validate=True).decode().partition(":")
    except ValueError:
        raise _not_basic() from None
    if not colon:
        raise _not_basic()
    found = ClientCredentials(unquote_plus(name), unquote_plus(password), basic=True, raw=(name, password))
    if body_id is not None and body_id not in (found.client_id, name):
        raise invalid_request("client_id in the body is not the one in the Authorization header.", "client_id")
    return found


def _not_basic() -> InvalidClient:
    return InvalidClient(
        "The Authorization header does not contain valid Basic credentials.", basic=True, about="client_id"
    )


async def authenticate(oauth: OAuth, given: ClientCredentials, ip: str) -> App:
    """Authenticate the client. A public app has no secret to check; its PKCE verifier or device code is checked later.

    A correct secret is accepted after any number of failures: 256 bits cannot be guessed anyway, and an app must keep
    working when a misconfigured app shares its address.
    """
    if given.secret:
        now = oauth.clock()
        return await authenticate_with(
            oauth, given, ip, lambda client_id, key: store.find_with_secret(oauth.db, client_id, key, now)
        )
    return await _accepted(oauth, given, ip, await _public(oauth, given, ip))


async def authenticate_with(oauth: OAuth, given: ClientCredentials, ip: str, find: Find[T]) -> T:
    """Authenticate a client by its secret, with a look-up that reads more than the app."""
    return await _accepted(oauth, given, ip, await _with_secret(given, find))


async def _accepted(oauth: OAuth, given: ClientCredentials, ip: str, found: T | None) -> T:
    if found is None:
        await oauth.limiter.take(FAILED_AUTHENTICATIONS, f"{network_of(ip)} {given.client_id}")
        if given.secret:
            raise InvalidClient(basic=given.basic)
        raise InvalidClient("Unknown client ID, or the app has a secret and none was sent.", basic=given.basic)
    return found


async def _with_secret(given: ClientCredentials, find: Find[T]) -> T | None:
    candidates = dict.fromkeys([(given.client_id, given.secret), *([given.raw] if given.raw else [])])
    for client_id, secret in candidates:
        # PostgreSQL rejects NUL in a query parameter.
        if secret and "\0" not in client_id and (found := await find(client_id, fingerprint(secret))):
            return found
    return None


async def _public(oauth: OAuth, given: ClientCredentials, ip: str) -> App | None:
    app = await find_client(oauth, given.client_id, ip, basic=given.basic)
    return app if app is not None and not app.confidential else None


async def find_client(oauth: OAuth, client_id: str, ip: str, *, basic: bool = False) -> App | None:
    """Like `find_app`, but an invalid metadata document raises invalid_client (RFC 6749, section 5.2)."""
    try:
        return await find_app(oauth, client_id, caller=ip)
    except InvalidDocument as error:
        raise InvalidClient(error.message, basic=basic) from error
