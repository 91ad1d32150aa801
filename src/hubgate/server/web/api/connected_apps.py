"""`/api/settings/connected-apps`: the apps that a user has approved, managed with a personal token.

A client id may be the URL of a client metadata document; it is percent-encoded in the path.
"""

import msgspec
from msgspec import UNSET, UnsetType

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import Caller
from hubgate.server.clock import iso, iso_or_none
from hubgate.server.edge.routes import KIB, Route, own
from hubgate.server.http.render import JsonResponse
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.http.surface import Surface
from hubgate.server.oauth.consent import connections
from hubgate.server.oauth.consent.model import AppConnection
from hubgate.server.oauth.context import OAuth
from hubgate.server.paging import parse_page
from hubgate.server.scopes import join_scopes
from hubgate.server.web.api.answers import NO_TOKEN
from hubgate.server.web.api.listing import PAGING, page_response
from hubgate.server.webhooks.context import Webhooks
from hubgate.server.webhooks.permissions import grants

PATH = "/api/settings/connected-apps"
_READ, _WRITE = Action.ACCOUNT_READ_SETTINGS, Action.ACCOUNT_WRITE_SETTINGS
_NOT_APPROVED = {**NO_TOKEN, 404: ("You have not approved this app.", None)}


class ConnectedApp(msgspec.Struct, rename="camel"):
    client_id: str
    name: str
    hosts: list[str]
    scopes: list[str]
    # Organization ids.
    organizations: list[str]
    # The scopes granted for each organization, by id.
    organization_scopes: dict[str, list[str]]
    # Other servers that the app may access (RFC 8707). Revoking the app revokes this access too.
    resources: list[str]
    # The scopes on any of those servers, then by server.
    resource_scopes: list[str]
    scopes_by_resource: dict[str, list[str]]
    created_at: str
    updated_at: str
    last_used_at: str | None


class ConnectedAppChanges(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    scopes: list[str] | UnsetType = UNSET
    organizations: list[str] | UnsetType = UNSET
    organization_scopes: dict[str, list[str]] = {}
    # Scopes can only be removed here, from all other servers or from one; the app has to request new ones.
    resource_scopes: list[str] | UnsetType = UNSET
    scopes_by_resource: dict[str, list[str]] = {}


def routes(oauth: OAuth, webhooks: Webhooks) -> list[Route]:
    async def list_all(request: HubRequest, caller: Caller) -> Response:
        found = await connections.page_of_user(oauth, caller.user.id, parse_page(request.query(), connections.CURSOR))
        return page_response(request, oauth.base_url, found, describe)

    async def get_one(request: HubRequest, caller: Caller) -> Response:
        return JsonResponse(describe(await connections.get(oauth, caller.user.id, request.param("client_id"))))

    async def change(request: HubRequest, caller: Caller) -> Response:
        given = await request.read_json(ConnectedAppChanges)
        changed = await connections.change(
            oauth,
            caller.signed_in_person,
            request.param("client_id"),
            connections.Changes(
                None if given.scopes is UNSET else given.scopes,
                None if given.organizations is UNSET else given.organizations,
                given.organization_scopes,
                None if given.resource_scopes is UNSET else given.resource_scopes,
                given.scopes_by_resource,
            ),
        )
        await grants.check_grants_of(webhooks, caller.user.id, changed.client_id)
        return JsonResponse(describe(changed))

    async def revoke(request: HubRequest, caller: Caller) -> Response:
        client_id = request.param("client_id")
        await connections.revoke(oauth, caller.user.id, client_id)
        await grants.check_grants_of(webhooks, caller.user.id, client_id)
        return Response(status_code=204)

    api, at_one = Surface.API, f"{PATH}/{{client_id}}"
    listing = {200: ("Newest first.", list[ConnectedApp]), **NO_TOKEN}
    shown = {200: ("The app and its permissions.", ConnectedApp), **_NOT_APPROVED}
    changed = {**shown, 422: ("The app does not have the scope, or you are not a member of the organization.", None)}
    revoked = {204: ("The app's tokens no longer work.", None), **_NOT_APPROVED}
    return [
        Route("GET", PATH, own(_READ, list_all), api, "List the apps that you approved", query=PAGING, answers=listing),
        Route("GET", at_one, own(_READ, get_one), api, "One app that you approved", answers=shown),
        Route(
            "PATCH",
            at_one,
            own(_WRITE, change),
            api,
            "Change an app's permissions and organizations",
            body=ConnectedAppChanges,
            answers=changed,
            body_cap=64 * KIB,
        ),
        Route("DELETE", at_one, own(_WRITE, revoke), api, "Revoke an app's access", answers=revoked),
    ]


def describe(connected: AppConnection) -> ConnectedApp:
    consent = connected.consent
    return ConnectedApp(
        client_id=consent.client_id,
        name=consent.app_name,
        hosts=list(connected.hosts),
        scopes=join_scopes(consent.scopes).split(),
        organizations=sorted(consent.organizations),
        organization_scopes={
            org: join_scopes(granted).split() for org, granted in sorted(consent.organizations.items())
        },
        resources=list(consent.other_resources),
        resource_scopes=join_scopes(consent.other_scopes).split(),
        scopes_by_resource={uri: join_scopes(consent.scopes_on(uri)).split() for uri in consent.other_resources},
        created_at=iso(consent.created_at),
        updated_at=iso(consent.updated_at),
        last_used_at=iso_or_none(consent.last_used_at),
    )
