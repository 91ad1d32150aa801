"""`POST /oauth/device`: starts the device flow and returns the codes (RFC 8628, section 3.1)."""

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from hubgate.server.access.caller import visitor_of
from hubgate.server.accounts.model import Visitor
from hubgate.server.accounts.tokens.text import TokenKind, new_token
from hubgate.server.edge.routes import KIB, Route, public
from hubgate.server.http.render import JsonResponse
from hubgate.server.http.request import FORM_TYPE, HubRequest
from hubgate.server.http.surface import Surface
from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.client_auth import authenticate, client_credentials
from hubgate.server.oauth.consent.model import AccessRequest
from hubgate.server.oauth.context import OAuth
from hubgate.server.oauth.device import store
from hubgate.server.oauth.device.model import INTERVAL_SECONDS, LIFETIME, LIFETIME_SECONDS, PENDING, DeviceCode
from hubgate.server.oauth.device.user_code import new_user_code, user_code_mac
from hubgate.server.oauth.errors import InvalidClient, invalid_request, unauthorized_client
from hubgate.server.oauth.explain.recording import record_refusals
from hubgate.server.oauth.parameters import read_body
from hubgate.server.oauth.requested_scopes import possible_scopes_on_local, requested_scopes, requested_scopes_on
from hubgate.server.oauth.resource_indicators import PARAMETER as RESOURCE
from hubgate.server.oauth.resource_indicators import requested_resources
from hubgate.server.oauth.resource_names import is_local
from hubgate.server.oauth.resource_servers.lookup import find_servers
from hubgate.server.storage.database import ConstraintViolated
from hubgate.server.web.oauth.token import NO_STORE

PATH = "/oauth/device"
# Attempts to find a free user code; collisions among 25 billion are rare.
_TRIES = 5


class DeviceRequest(msgspec.Struct, omit_defaults=True):
    client_id: str
    client_secret: str | UnsetType = UNSET
    scope: str | UnsetType = UNSET
    resource: str | list[str] | UnsetType = UNSET


class DeviceAnswer(msgspec.Struct):
    device_code: str
    user_code: str
    verification_uri: str
    verification_uri_complete: str
    expires_in: int
    interval: int


def routes(oauth: OAuth) -> list[Route]:
    async def start(request: HubRequest) -> JsonResponse:
        parameters = await read_body(request)
        visitor, given = visitor_of(request), client_credentials(request, parameters)
        if given is None:
            raise invalid_request("client_id is missing.")
        app = await authenticate(oauth, given, visitor.ip)
        if app.document_host and not oauth.cimd_device:
            raise unauthorized_client(
                "On this hub, an app with a metadata document cannot use the device flow. Use the code flow."
            )
        resources = requested_resources(parameters.all(RESOURCE), oauth.base_url) or ()
        scopes = await _scopes(oauth, app, parameters.get("scope"), resources)
        access = AccessRequest(app, scopes, resources=resources)
        return JsonResponse(await _start(oauth, access, visitor, basic=given.basic), headers=NO_STORE)

    return [
        Route(
            "POST",
            PATH,
            public(record_refusals(oauth, start)),
            Surface.OAUTH,
            "Start the device flow, for a device without a browser",
            body=DeviceRequest,
            body_type=FORM_TYPE,
            answers={
                200: ("The code to display, and the device code for /oauth/token.", DeviceAnswer),
                400: ("Refused; error says why.", None),
                401: ("The app's authentication failed.", None),
                429: ("Too many failed authentications.", None),
            },
            body_cap=64 * KIB,
        )
    ]


async def _scopes(oauth: OAuth, app: App, given: str | None, resources: tuple[str, ...]) -> tuple[str, ...]:
    if not resources:
        return requested_scopes(oauth, app, given)
    servers = await find_servers(oauth, resources, None)
    if any(map(is_local, resources)):
        return possible_scopes_on_local(oauth, app, given)
    return requested_scopes_on(oauth, app, given, servers)


async def _start(oauth: OAuth, access: AccessRequest, visitor: Visitor, *, basic: bool) -> dict[str, Any]:
    app, now = access.app, oauth.clock()
    device_code, key = new_token(TokenKind.DEVICE, now)
    for _ in range(_TRIES):
        user_code = new_user_code()
        code = DeviceCode(
            key=key,
            user_code=user_code_mac(user_code, oauth.secret),
            client_id=app.client_id,
            app_id=app.client_id if app.is_registered else None,
            scopes=" ".join(access.scopes),
            state=PENDING,
            user_id=None,
            consent_id=None,
            auth_time=None,
            interval=INTERVAL_SECONDS,
            polled_at=None,
            ip=visitor.ip,
            user_agent=visitor.user_agent,
            created_at=now,
            expires_at=now + LIFETIME,
            resources=" ".join(access.resources),
        )
        try:
            added = await store.add(oauth.db, code)
        except ConstraintViolated:
            # The app was deleted after it authenticated.
            raise InvalidClient(basic=basic) from None
        if added:
            page = f"{oauth.base_url}{PATH}"
            return {
                "device_code": device_code,
                "user_code": user_code,
                "verification_uri": page,
                "verification_uri_complete": f"{page}?user_code={user_code}",
                "expires_in": LIFETIME_SECONDS,
                "interval": INTERVAL_SECONDS,
            }
    raise RuntimeError("no user code was free")
