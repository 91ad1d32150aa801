"""Renders errors as responses: one shape per protocol, the same on all of its routes."""

import re
from collections.abc import Callable

import msgspec

from hubgate.server.errors import (
    Forbidden,
    HubError,
    MethodNotAllowed,
    TokenForAnotherServer,
    TooManyRequests,
    Unauthorized,
    Unavailable,
)
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import PlainTextResponse, Response
from hubgate.server.http.surface import ErrorShape, Surface

ErrorPage = Callable[[HubRequest, HubError], Response]

REALM = "hubgate"
LONGEST_HEADER_TEXT = 300

# Codes of RFC 6749 section 5.2 and RFC 6750, for errors without a code. Client authentication errors have a code, so a
# 401 without a code is about a bearer token.
_BUSY = "temporarily_unavailable"
_OAUTH_CODES = {401: "invalid_token", 403: "access_denied", 429: _BUSY, 500: "server_error", 503: _BUSY}

# Characters outside printable ASCII; also quote and backslash, which could end the text early in a header or a log.
_NOT_IN_DESCRIPTION = re.compile(r"[^\x20-\x21\x23-\x5b\x5d-\x7e]")


def oauth_text(text: str) -> str:
    """The text as an `error_description` (RFC 6749, sections 4.1.2.1 and 5.2), which may echo the caller's input."""
    return _NOT_IN_DESCRIPTION.sub("?", text)


class JsonResponse(Response):
    media_type = "application/json"

    def render(self, content: object) -> bytes:
        return msgspec.json.encode(content)


class LfsResponse(JsonResponse):
    """JSON with the media type that git-lfs requires."""

    media_type = "application/vnd.git-lfs+json"


class ErrorRenderer:
    def __init__(self, base_url: str, error_page: ErrorPage) -> None:
        self._metadata = f"{base_url}/.well-known/oauth-protected-resource"
        self._explain = f"{base_url}/oauth/explain/"
        self._page = error_page

    def response(self, request: HubRequest, surface: Surface, error: HubError) -> Response:
        match surface.rules.errors:
            case ErrorShape.PAGE:
                response = self._page(request, error)
            case ErrorShape.OAUTH:
                # error_uri (RFC 6749, section 5.2), only if that page exists.
                more = {"error_uri": self._explain + request.request_id} if request.is_explained else {}
                response = JsonResponse({**_oauth_body(error), **more}, error.status)
            case ErrorShape.TEXT:
                response = PlainTextResponse(error.message + "\n", error.status)
            case ErrorShape.LFS:
                # git-lfs shows `message`, other clients `error`.
                body = {"error": error.message, "message": error.message}
                response = LfsResponse(body, error.status)
            case ErrorShape.API:
                response = JsonResponse({"error": error.message}, error.status)
        self._add_headers(request, response, surface, error)
        return response

    def _add_headers(self, request: HubRequest, response: Response, surface: Surface, error: HubError) -> None:
        if surface is not Surface.PAGE:
            response.headers["x-error-message"] = _one_ascii_line(error.message)
            if error.code is not None and surface.rules.errors is not ErrorShape.OAUTH:
                response.headers["x-error-code"] = error.code
        if isinstance(error, (TooManyRequests, Unavailable)) and error.retry_after is not None:
            response.headers["retry-after"] = str(error.retry_after)
        if isinstance(error, MethodNotAllowed):
            response.headers["allow"] = ", ".join(error.allowed)
        if challenge := self._challenge(request, surface, error):
            response.headers["www-authenticate"] = challenge

    def _challenge(self, request: HubRequest, surface: Surface, error: HubError) -> str | None:
        if isinstance(error, Unauthorized) and error.challenge is not None:
            return error.challenge
        metadata = f'resource_metadata="{self._metadata}"'
        reason = f'error="invalid_token", error_description="{oauth_text(error.message)}"'
        bearer = surface in (Surface.API, Surface.FILE) or surface.rules.errors is ErrorShape.OAUTH
        if isinstance(error, Unauthorized) and bearer:
            # Without a token in the request there is no error to name (RFC 6750, section 3.1).
            is_named = request.presents_token or isinstance(error, TokenForAnotherServer)
            detail = f"{reason}, " if is_named else ""
            return f'Bearer realm="{REALM}", {detail}{metadata}'
        if isinstance(error, Unauthorized) and surface is not Surface.PAGE:
            # git ignores every scheme but Basic.
            detail = f", Bearer {reason}" if isinstance(error, TokenForAnotherServer) else ""
            return f'Basic realm="{REALM}"{detail}'
        if isinstance(error, Forbidden) and error.scopes and surface is not Surface.PAGE:
            scope = " ".join(error.scopes)
            return f'Bearer realm="{REALM}", error="insufficient_scope", scope="{scope}", {metadata}'
        return None


def _oauth_body(error: HubError) -> dict[str, str]:
    code = error.code or _OAUTH_CODES.get(error.status, "invalid_request")
    return {"error": code, "error_description": oauth_text(error.message)}


def _one_ascii_line(text: str) -> str:
    """The message for a header: it may echo the caller's input, so control characters are replaced and long texts are
    truncated."""
    return re.sub(r"[^\x20-\x7e]+", " ", text.encode("ascii", "replace").decode())[:LONGEST_HEADER_TEXT].strip()
