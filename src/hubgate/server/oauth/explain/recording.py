"""Records the requests that a handler rejects, for the app's owner to read."""

import base64
import contextlib
from urllib.parse import unquote_plus

from hubgate.server.edge.routes import PublicHandler
from hubgate.server.errors import HubError, TooManyRequests
from hubgate.server.http.asgi import ASGIApp
from hubgate.server.http.request import HubRequest
from hubgate.server.oauth.context import OAuth
from hubgate.server.oauth.errors import AuthorizationPending, InvalidClient, OAuthError
from hubgate.server.oauth.explain.model import client_id_of, sent_parameters
from hubgate.server.oauth.logout.request import LogoutError
from hubgate.server.oauth.parameters import read_pairs

Pairs = list[tuple[str, str]]


def record_refusals(oauth: OAuth, handler: PublicHandler) -> PublicHandler:
    """Wrap a handler to store the requests that it rejects; their error responses then have an `error_uri`."""

    async def handle(request: HubRequest) -> ASGIApp:
        try:
            return await handler(request)
        except HubError as error:
            if error.status < 500 and not isinstance(error, TooManyRequests | AuthorizationPending):
                request.is_explained = await _store_error(oauth, request, error)
            raise

    return handle


async def record_authorization_error(
    oauth: OAuth, request: HubRequest, pairs: Pairs, error: str, description: str, about: str = ""
) -> None:
    """Store an error of the authorization page, where the browser sends the app's request."""
    sent = sent_parameters(pairs, about=about)
    path, client_id = request.path, client_id_of(pairs)
    request.is_explained = await oauth.refusals.record(request.request_id, client_id, path, error, description, sent)


async def record_logout_error(oauth: OAuth, request: HubRequest, pairs: Pairs, error: LogoutError) -> None:
    """Store an error of the sign-out page, where the browser sends the app's request."""
    sent = sent_parameters(pairs, about=error.about)
    code, path = error.code or "invalid_request", request.path
    request.is_explained = await oauth.refusals.record(
        request.request_id, error.client_id, path, code, error.message, sent
    )


async def _store_error(oauth: OAuth, request: HubRequest, error: HubError) -> bool:
    pairs: Pairs = []
    if request.has_read_body:
        # An unreadable body is stored as empty.
        with contextlib.suppress(HubError):
            pairs = await read_pairs(request)
    client_id = _client_id_in_header(request.headers.get("authorization", "")) or client_id_of(pairs)
    code = error.code or "invalid_request"
    about = error.about if isinstance(error, OAuthError | InvalidClient) else ""
    sent = sent_parameters(pairs, _proof(request, pairs), about)
    return await oauth.refusals.record(request.request_id, client_id, request.path, code, error.message, sent)


def _proof(request: HubRequest, pairs: Pairs) -> str:
    names = {name for name, value in pairs if value}
    header = request.headers.get("authorization")
    if header is not None:
        if header.partition(" ")[0].lower() != "basic":
            return "other"
        return "both" if "client_secret" in names else "basic"
    if "client_secret" in names:
        return "body"
    return "id" if "client_id" in names else ""


def _client_id_in_header(header: str) -> str:
    """The client id, form-decoded; ids of registered apps are the same with or without decoding."""
    scheme, _, value = header.partition(" ")
    if scheme.lower() != "basic":
        return ""
    try:
        client_id = unquote_plus(base64.b64decode(value.strip(), validate=True).decode().partition(":")[0])
    except ValueError:
        return ""
    # PostgreSQL rejects NUL in a query parameter.
    return "" if "\0" in client_id else client_id
