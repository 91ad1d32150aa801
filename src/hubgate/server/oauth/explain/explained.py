"""Handlers whose refusals are kept for the app's owner."""

import base64
import contextlib
from urllib.parse import unquote_plus

from starlette.types import ASGIApp

from hubgate.server.errors import HubError, TooManyRequests
from hubgate.server.http.request import HubRequest
from hubgate.server.http.routes import Handler
from hubgate.server.oauth.context import OAuth
from hubgate.server.oauth.explain.model import client_of, sent_of
from hubgate.server.oauth.parameters import read_pairs

Pairs = list[tuple[str, str]]


def explained(oauth: OAuth, handler: Handler) -> Handler:
    """An endpoint that apps call. The answer itself gets its `error_uri` where errors are rendered."""

    async def handle(request: HubRequest) -> ASGIApp:
        try:
            return await handler(request)
        except HubError as error:
            if error.status < 500 and not isinstance(error, TooManyRequests):
                await _note(oauth, request, error)
            raise

    return handle


def note_pairs(oauth: OAuth, request: HubRequest, pairs: Pairs, error: str, description: str) -> None:
    """For the authorization page, where the browser brings the request."""
    oauth.refusals.note(request.request_id, client_of(pairs), request.url.path, error, description, sent_of(pairs))


async def _note(oauth: OAuth, request: HubRequest, error: HubError) -> None:
    pairs: Pairs = []
    if request.is_whole:
        # What cannot be read says nothing.
        with contextlib.suppress(HubError):
            pairs = await read_pairs(request)
    named = _in_header(request.headers.get("authorization", "")) or client_of(pairs)
    code = error.code or "invalid_request"
    sent = sent_of(pairs, _proof(request, pairs))
    oauth.refusals.note(request.request_id, named, request.url.path, code, error.message, sent)


def _proof(request: HubRequest, pairs: Pairs) -> str:
    if "authorization" in request.headers:
        return "basic"
    names = {name for name, value in pairs if value}
    if "client_secret" in names:
        return "body"
    return "id" if "client_id" in names else ""


def _in_header(header: str) -> str:
    """The client id, form-decoded: ids of registered apps look the same either way."""
    scheme, _, value = header.partition(" ")
    if scheme.lower() != "basic":
        return ""
    try:
        return unquote_plus(base64.b64decode(value.strip(), validate=True).decode().partition(":")[0])
    except ValueError:
        return ""
