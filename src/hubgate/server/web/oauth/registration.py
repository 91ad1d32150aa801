"""`/oauth/register`: dynamic client registration (RFC 7591) and its management (RFC 7592)."""

from typing import Any

from hubgate.server.edge.routes import KIB, PublicHandler, Route, public
from hubgate.server.errors import BadRequest, NotFound, Unprocessable
from hubgate.server.http.render import JsonResponse
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.http.surface import Surface
from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.context import OAuth
from hubgate.server.oauth.errors import OAuthError
from hubgate.server.oauth.registration import clients
from hubgate.server.oauth.registration.model import OFF, ClientMetadata, RegisteredClient, describe
from hubgate.server.web.oauth.token import NO_STORE

PATH = "/oauth/register"
_ONE = f"{PATH}/{{client_id}}"
_OFF = "Apps cannot register themselves on this hub. Register one in your settings, or publish a metadata document."
_UNAUTHORIZED = {401: ("The token is missing, unknown or revoked.", None)}
_INVALID = {400: ("Refused; error says why.", None)}
_SHOWN: dict[int, Any] = {200: ("The registration.", RegisteredClient), **_UNAUTHORIZED}


def routes(oauth: OAuth) -> list[Route]:
    def answer(app: App, token: str, status: int = 200) -> Response:
        registered = describe(app, oauth.base_url)
        registered.registration_access_token = token
        return JsonResponse(registered, status, headers=NO_STORE)

    async def register(request: HubRequest) -> Response:
        if oauth.registration == OFF:
            raise NotFound(_OFF)
        app, token = await clients.register(oauth, await _metadata(request), _bearer(request), request.client_ip)
        return answer(app, token, 201)

    async def show(request: HubRequest) -> Response:
        app = await clients.get(oauth, request.param("client_id"), _bearer(request))
        return answer(app, _bearer(request))

    async def update(request: HubRequest) -> Response:
        current = await clients.get(oauth, request.param("client_id"), _bearer(request))
        metadata = await _metadata(request)
        if metadata.client_id != current.client_id:
            raise OAuthError("invalid_client_metadata", "client_id must be that of the registration.")
        app = await clients.update(oauth, current.client_id, metadata, request.client_ip)
        return answer(app, _bearer(request))

    async def delete(request: HubRequest) -> Response:
        app = await clients.get(oauth, request.param("client_id"), _bearer(request))
        await clients.delete(oauth, app.client_id)
        return Response(status_code=204, headers=NO_STORE)

    created = {201: ("The app, with the token that manages its registration.", RegisteredClient), **_INVALID}
    flooded = {404: (_OFF, None), 429: ("Too many registrations, from this address or on this hub.", None)}
    changed = {**_SHOWN, **_INVALID, 429: ("Too many updates from this address.", None)}
    return [
        _route("POST", PATH, register, "Register an app without an account", {**created, **_UNAUTHORIZED, **flooded}),
        _route("GET", _ONE, show, "A self-registered app", _SHOWN),
        _route("PUT", _ONE, update, "Update a self-registered app", changed),
        _route("DELETE", _ONE, delete, "Delete a self-registered app", {204: ("Deleted.", None), **_UNAUTHORIZED}),
    ]


def _route(method: str, path: str, handler: PublicHandler, summary: str, answers: dict[int, Any]) -> Route:
    body = ClientMetadata if method in ("POST", "PUT") else None
    return Route(method, path, public(handler), Surface.OAUTH, summary, body=body, answers=answers, body_cap=32 * KIB)


async def _metadata(request: HubRequest) -> ClientMetadata:
    try:
        return await request.read_json(ClientMetadata)
    except (BadRequest, Unprocessable) as error:
        if error.status not in (400, 422):
            raise
        raise OAuthError("invalid_client_metadata", error.message) from error


def _bearer(request: HubRequest) -> str:
    scheme, _, value = request.headers.get("authorization", "").partition(" ")
    return value.strip() if scheme.lower() == "bearer" else ""
