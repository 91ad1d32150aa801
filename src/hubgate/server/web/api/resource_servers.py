"""`/api/settings/resources`: the caller's resource servers and, under `/api/organizations/{name}`, those of an
organization.
"""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType, to_builtins
from msgspec.structs import replace

from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.model import Organization
from hubgate.server.clock import iso
from hubgate.server.edge.routes import KIB, Handler, Route
from hubgate.server.errors import Unprocessable
from hubgate.server.http.render import JsonResponse
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.http.surface import Surface
from hubgate.server.oauth.context import OAuth
from hubgate.server.oauth.resource_servers import management, proof
from hubgate.server.oauth.resource_servers.fields import LONGEST_IDENTIFIER, LONGEST_NAME, LONGEST_TEXT
from hubgate.server.oauth.resource_servers.model import MAX_SCOPES, ResourceScope, ResourceServer
from hubgate.server.web.api.answers import NO_TOKEN
from hubgate.server.web.api.application_shapes import NewSecret
from hubgate.server.web.owner_routes import RESOURCES, OwnerContext

_ONE, _SECRET, _VERIFY = "/{id}", "/{id}/secret", "/{id}/verify"
_REFUSALS = {
    **NO_TOKEN,
    403: ("The token is read-only or belongs to an app, or you are not an admin of the organization.", None),
}
_NOT_FOUND = {**_REFUSALS, 404: ("Resource server not found, or it is not yours.", None)}
_INVALID = {422: ("A field is unknown or invalid; error says which.", None)}

Name = Annotated[str, Meta(min_length=1, max_length=LONGEST_NAME)]
Format = Literal["opaque", "jwt"]


class OwnScope(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    # Shown on the consent page.
    text: Annotated[str, Meta(min_length=1, max_length=LONGEST_TEXT)]


Scopes = Annotated[list[OwnScope], Meta(max_length=MAX_SCOPES)]


class Challenge(msgspec.Struct):
    """The proof of control: a file at `url` whose text contains `content`."""

    url: str
    content: str


class RegisteredResource(msgspec.Struct, rename="camel"):
    id: str
    identifier: str
    name: str
    scopes: list[OwnScope]
    tokens: Format
    # The organization's name.
    organization: str | None
    # Whether the server can introspect tokens: control was proved, or need not be.
    active: bool
    # Null once control was proved.
    challenge: Challenge | None
    created_at: str
    # Only in the response that created the secret.
    secret: str | UnsetType = UNSET


class NewResource(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    identifier: Annotated[str, Meta(min_length=1, max_length=LONGEST_IDENTIFIER)]
    name: Name
    scopes: Scopes = []
    tokens: Format = "opaque"


class ResourceChanges(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """Changes to a resource server; fields that are not sent stay unchanged."""

    name: Name | UnsetType = UNSET
    scopes: Scopes | UnsetType = UNSET
    tokens: Format | UnsetType = UNSET
    # Read-only: accepted only with their current value.
    id: str | UnsetType = UNSET
    identifier: str | UnsetType = UNSET
    organization: str | UnsetType | None = UNSET
    active: bool | UnsetType = UNSET
    challenge: Challenge | UnsetType | None = UNSET
    created_at: str | UnsetType = UNSET


_READ_ONLY = {
    "id": "",
    "identifier": " Register another resource server.",
    "organization": "",
    "active": " POST to /verify proves control.",
    "challenge": "",
    "createdAt": "",
}


def routes(oauth: OAuth, accounts: Accounts) -> list[Route]:
    return [*_routes(_Resources(oauth), None), *_routes(_Resources(oauth), accounts)]


class _Resources:
    def __init__(self, oauth: OAuth) -> None:
        self._oauth = oauth

    async def list_all(self, _: HubRequest, context: OwnerContext) -> Response:
        found = await management.of_owner(self._oauth, context.owner)
        return JsonResponse([describe(server, context.organization) for server in found])

    async def get_one(self, request: HubRequest, context: OwnerContext) -> Response:
        return JsonResponse(describe(await self._server(request, context), context.organization))

    async def create(self, request: HubRequest, context: OwnerContext) -> Response:
        given = await request.read_json(NewResource)
        draft = ResourceServer("", given.identifier, given.name, _scopes(given.scopes), given.tokens)
        server, secret = await management.create(self._oauth, context.owner, draft, context.actor)
        return JsonResponse(_with_secret(server, context, secret), 201)

    async def change(self, request: HubRequest, context: OwnerContext) -> Response:
        given = await request.read_json(ResourceChanges)
        server = await self._server(request, context)
        _reject_read_only(given, server, context)
        changed = await management.update(self._oauth, server, lambda latest: _changed(latest, given), context.actor)
        return JsonResponse(describe(changed, context.organization))

    async def delete(self, request: HubRequest, context: OwnerContext) -> Response:
        await management.delete(self._oauth, await self._server(request, context), context.actor)
        return Response(status_code=204)

    async def refresh_secret(self, request: HubRequest, context: OwnerContext) -> Response:
        overlap = (await request.read_json(NewSecret)).overlap_seconds if await request.body() else 0
        server = await self._server(request, context)
        secret = await management.refresh_secret(self._oauth, server, overlap, context.actor)
        return JsonResponse(_with_secret(server, context, secret))

    async def verify(self, request: HubRequest, context: OwnerContext) -> Response:
        server = await proof.verify(self._oauth, await self._server(request, context), context.actor)
        return JsonResponse(describe(server, context.organization))

    async def _server(self, request: HubRequest, context: OwnerContext) -> ResourceServer:
        return await management.get(self._oauth, context.owner, request.param("id"))


def describe(server: ResourceServer, organization: Organization | None) -> RegisteredResource:
    return RegisteredResource(
        id=server.id,
        identifier=server.identifier,
        name=server.name,
        scopes=[OwnScope(scope.name, scope.text) for scope in server.scopes],
        tokens="jwt" if server.tokens == "jwt" else "opaque",
        organization=organization.name if organization else None,
        active=server.is_active,
        challenge=None if server.is_active else Challenge(server.challenge_url, server.challenge),
        created_at=iso(server.created_at),
    )


def _with_secret(server: ResourceServer, context: OwnerContext, secret: str) -> RegisteredResource:
    described = describe(server, context.organization)
    described.secret = secret
    return described


def _scopes(given: list[OwnScope]) -> tuple[ResourceScope, ...]:
    return tuple(ResourceScope(scope.name, scope.text) for scope in given)


def _changed(server: ResourceServer, given: ResourceChanges) -> ResourceServer:
    return replace(
        server,
        name=server.name if given.name is UNSET else given.name,
        scopes=server.scopes if given.scopes is UNSET else _scopes(given.scopes),
        tokens=server.tokens if given.tokens is UNSET else given.tokens,
    )


def _reject_read_only(given: ResourceChanges, server: ResourceServer, context: OwnerContext) -> None:
    """Reject changes of read-only fields; their current values are accepted."""
    sent = to_builtins(given)
    current: dict[str, Any] = to_builtins(describe(server, context.organization))
    for name, advice in _READ_ONLY.items():
        if name in sent and sent[name] != current[name]:
            raise Unprocessable(f"{name} is read-only.{advice}")


def _routes(resources: _Resources, accounts: Accounts | None) -> list[Route]:
    whose = "your" if accounts is None else "an organization's"
    for_organization = "" if accounts is None else " of an organization"

    def route(
        method: str, path: str, handler: Handler[OwnerContext], summary: str, answers: dict[int, Any], **more: Any
    ) -> Route:
        more |= {"answers": answers, "body_cap": 64 * KIB}
        return RESOURCES.route(accounts, method, path, handler, Surface.API, summary, **more)

    one = RegisteredResource
    shown = {200: ("The resource server.", one), **_NOT_FOUND}
    created = {
        201: ("The resource server with its secret, which is only in this response.", one),
        **_REFUSALS,
        **_INVALID,
    }
    secret_answer = {200: ("The resource server with its new secret, which is only in this response.", one)}
    refreshed = {**secret_answer, **_NOT_FOUND, **_INVALID}
    verified = {**shown, 409: ("The challenge is not served, or another owner has proved control.", None)}
    listed = {200: ("Oldest first.", list[RegisteredResource]), **_REFUSALS}
    deleted = {204: ("Deleted. Its tokens can no longer be introspected.", None), **_NOT_FOUND}
    named = f"one of {whose} resource servers"
    return [
        route("GET", "", resources.list_all, f"List {whose} resource servers", listed),
        route("POST", "", resources.create, f"Register a resource server{for_organization}", created, body=NewResource),
        route("GET", _ONE, resources.get_one, named.capitalize(), shown),
        route("PATCH", _ONE, resources.change, f"Change {named}", {**shown, **_INVALID}, body=ResourceChanges),
        route("DELETE", _ONE, resources.delete, f"Delete {named}", deleted),
        route("POST", _SECRET, resources.refresh_secret, f"A new secret for {named}", refreshed, body=NewSecret),
        route("POST", _VERIFY, resources.verify, f"Prove control of {named}", verified),
    ]
