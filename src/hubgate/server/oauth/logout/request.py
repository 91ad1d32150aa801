"""A validated request to sign out, and the errors of an invalid one, which are shown on the hub's own page."""

from urllib.parse import quote, urlencode

from msgspec import Struct

from hubgate.server.errors import BadRequest
from hubgate.server.oauth.apps.lookup import find_app
from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.cimd.documents import InvalidDocument
from hubgate.server.oauth.context import OAuth
from hubgate.server.oauth.redirects import matches, with_parameters

TARGET = "post_logout_redirect_uri"
# All parameters that the checks read; any others are ignored.
PARAMETERS = frozenset({"client_id", "id_token_hint", TARGET, "state"})
LONGEST_STATE = 4096
_STOPPED = "{}. Nobody was signed out."


class LogoutError(BadRequest):
    """The request is invalid, status 400: the browser is not redirected and nobody is signed out (attack O49).

    `client_id` is empty if the request does not name an app; `about` names the parameter.
    """

    def __init__(self, reason: str, *, about: str, client_id: str = "") -> None:
        super().__init__(_STOPPED.format(reason), code="invalid_request")
        self.about, self.client_id = about, client_id


class LogoutRequest(Struct, frozen=True):
    # None if the request does not name an app.
    app: App | None = None
    # Where the browser continues; empty for the hub's own page.
    target: str = ""


def too_long(pairs: list[tuple[str, str]]) -> LogoutError:
    """The error of a request that does not fit into an address: names the longest parameter."""
    name, _ = max((pair for pair in pairs if pair[0] in PARAMETERS), key=lambda pair: len(pair[1]))
    client_id = next((value for other, value in pairs if other == "client_id"), "")
    return LogoutError(f"{name} is too long", about=name, client_id="" if name == "client_id" else client_id)


async def parse(oauth: OAuth, pairs: list[tuple[str, str]], caller: str) -> LogoutRequest:
    """Check a request. The hint may be expired: an app may store an ID token for years."""
    values = {name: value for name, value in pairs if value}
    for name in PARAMETERS:
        if sum(name == other for other, _ in pairs) > 1:
            raise LogoutError(f"{name} was sent more than once", about=name, client_id=values.get("client_id", ""))
    client_id = await _client_id(oauth, values)
    app = await _find_app(oauth, client_id, caller) if client_id else None
    target, state = values.get(TARGET, ""), values.get("state", "")
    if not target:
        return LogoutRequest(app)
    if app is None:
        reason = "The app did not say who it is, with id_token_hint or client_id"
        raise LogoutError(reason, about="id_token_hint")
    if not matches(app.post_logout_redirect_uris, target):
        reason = f"{app.name[:60]} asked to send you to an address it has not registered"
        raise LogoutError(reason, about=TARGET, client_id=app.client_id)
    if len(state.encode()) > LONGEST_STATE:
        raise LogoutError(f"state has more than {LONGEST_STATE:,} bytes", about="state", client_id=app.client_id)
    return LogoutRequest(
        app, with_parameters(target, urlencode({"state": state}, quote_via=quote)) if state else target
    )


async def _client_id(oauth: OAuth, values: dict[str, str]) -> str:
    """The app that the request names: by `client_id`, by the ID token, or by both, which have to agree."""
    named, hint = values.get("client_id", ""), values.get("id_token_hint")
    if hint is None:
        return named
    claims = await oauth.signer.id_token_claims(hint, oauth.base_url)
    audience = claims.get("aud") if claims else None
    if not isinstance(audience, str):
        raise LogoutError("id_token_hint is not an ID token of this hub", about="id_token_hint", client_id=named)
    if named not in ("", audience):
        raise LogoutError("id_token_hint was issued to another app", about="id_token_hint", client_id=named)
    return audience


async def _find_app(oauth: OAuth, client_id: str, caller: str) -> App:
    try:
        app = await find_app(oauth, client_id, caller=caller)
    except InvalidDocument as error:
        raise LogoutError(error.message.rstrip("."), about="client_id", client_id=client_id) from error
    if app is None:
        raise LogoutError("This hub does not know the app that sent you", about="client_id")
    return app
