"""Connected apps: their permissions and last use, changing the permissions, and revoking an app."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from msgspec import Struct

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import Caller
from hubgate.server.accounts.model import Membership, Person
from hubgate.server.edge.routes import KIB, Handler, Route, own
from hubgate.server.errors import FieldErrors
from hubgate.server.http.forms import Fields
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.http.surface import Surface
from hubgate.server.oauth.consent import connections
from hubgate.server.oauth.consent.model import AppConnection
from hubgate.server.oauth.context import OAuth
from hubgate.server.oauth.resource_names import registration_of, shown_server, shown_servers, uri_of
from hubgate.server.oauth.resource_servers import store as resource_store
from hubgate.server.scopes import IDENTITY_SCOPES, Risk, Scope, join_scopes
from hubgate.server.web.pages.listing import list_page
from hubgate.server.web.pages.oauth.consent import OrganizationLine, ScopeLine, groups_of, own_scope_lines, scope_lines
from hubgate.server.web.rendering import NO_ERRORS, Pages
from hubgate.server.web.untrusted_text import display_name
from hubgate.server.webhooks.context import Webhooks
from hubgate.server.webhooks.permissions import grants

PATH = "/settings/connected"
RESOURCE_SCOPES = "resource_scopes"
_READ, _WRITE = Action.ACCOUNT_READ_SETTINGS, Action.ACCOUNT_WRITE_SETTINGS


class ServerChoice(Struct, frozen=True):
    """The scopes of an app on another server."""

    uri: str
    host: str
    # The name of a registered server; otherwise empty.
    name: str
    lines: Sequence[ScopeLine]


def routes(pages: Pages, oauth: OAuth, webhooks: Webhooks) -> list[Route]:
    async def list_all(request: HubRequest, caller: Caller) -> Response:
        found = list_page(request, await connections.of_user(oauth, caller.user.id))
        return pages.page(
            request,
            "settings/connected.html",
            section=PATH,
            shown=found,
            name_of=name_of,
            address_of=address_of,
            ordered_scopes=ordered_scopes,
            servers_of=servers_of,
        )

    def servers_of(connected: AppConnection) -> tuple[str, ...]:
        return shown_servers(connected.consent.other_resources, oauth.base_url)

    def show(
        request: HubRequest,
        template: str,
        connected: AppConnection,
        errors: Mapping[str, str] = NO_ERRORS,
        **values: Any,
    ) -> Response:
        at = address_of(connected.client_id)
        name = name_of(connected)
        return pages.page(
            request, template, errors=errors, section=PATH, connected=connected, name=name, at=at, **values
        )

    def organization_line(membership: Membership, connected: AppConnection) -> OrganizationLine:
        """The line of an organization: with scopes to change if the app has access, otherwise without."""
        granted = connected.consent.organizations.get(membership.organization.id)
        if granted is None:
            return OrganizationLine(membership, ticked=False)
        lines = scope_lines(connected.consent.scopes - IDENTITY_SCOPES, (), granted, oauth.extra_scopes)
        return OrganizationLine(membership, ticked=True, scopes=lines)

    async def server_choice(connected: AppConnection, uri: str) -> ServerChoice:
        """The scopes on one server. Those of a registered server have its texts, if it still exists."""
        granted, names = connected.consent.scopes_on(uri), connected.consent.resource_scopes
        ids = [registration_of(name) for name in names if uri_of(name) == uri]
        found = [server for each in ids if each and (server := await resource_store.find(oauth.db, each))]
        own = [line for server in found for line in own_scope_lines(server, granted, (), granted)]
        lines = [*own, *scope_lines(granted, (), granted, ())]
        unknown = granted - {line.scope.name for line in lines}
        lines += [ScopeLine(Scope(name, Risk.CHANGES, ""), fixed=False) for name in sorted(unknown)]
        name = display_name(found[0].name) if found else ""
        return ServerChoice(uri, shown_server(uri, oauth.base_url), name, lines)

    async def show_one(
        request: HubRequest, person: Person, connected: AppConnection, errors: Mapping[str, str] = NO_ERRORS
    ) -> Response:
        granted = connected.consent.scopes
        fixed = granted & (IDENTITY_SCOPES | connected.required_scopes)
        return show(
            request,
            "settings/connected_app.html",
            connected,
            errors,
            servers=servers_of(connected),
            server_choices=[await server_choice(connected, uri) for uri in connected.consent.other_resources],
            groups=groups_of(connected.allowable_scopes, fixed, granted, oauth.extra_scopes),
            organizations=[organization_line(membership, connected) for membership in person.memberships],
        )

    async def show_app(request: HubRequest, caller: Caller) -> Response:
        person = caller.signed_in_person
        return await show_one(request, person, await connections.get(oauth, person.user.id, request.param("client_id")))

    async def change(request: HubRequest, caller: Caller) -> Response:
        person, form = caller.signed_in_person, request.form_fields
        connected = await connections.get(oauth, person.user.id, request.param("client_id"))
        try:
            await connections.change(oauth, person, connected.client_id, changes_of(form))
        except FieldErrors as error:
            return await show_one(request, person, connected, error.fields)
        await grants.check_grants_of(webhooks, person.user.id, connected.client_id)
        return pages.redirect(address_of(connected.client_id), "Saved. Takes effect on the app's next request.")

    async def confirm_revoke(request: HubRequest, caller: Caller) -> Response:
        connected = await connections.get(oauth, caller.user.id, request.param("client_id"))
        tokens = await connections.count_tokens(oauth, connected)
        return show(request, "settings/connected_revoke.html", connected, tokens=tokens)

    async def revoke(request: HubRequest, caller: Caller) -> Response:
        user = caller.user
        connected = await connections.get(oauth, user.id, request.param("client_id"))
        await connections.revoke(oauth, user.id, connected.client_id)
        await grants.check_grants_of(webhooks, user.id, connected.client_id)
        return pages.redirect(PATH, f"Revoked {name_of(connected)}.")

    def page(method: str, path: str, handler: Handler[Caller], action: Action, summary: str) -> Route:
        return Route(method, path, own(action, handler), Surface.PAGE, summary, body_cap=64 * KIB)

    at = f"{PATH}/{{client_id}}"
    return [
        page("GET", PATH, list_all, _READ, "Connected apps"),
        page("GET", at, show_app, _READ, "The permissions of a connected app"),
        page("POST", at, change, _WRITE, "Change the permissions of a connected app"),
        page("GET", f"{at}/revoke", confirm_revoke, _WRITE, "Confirm revoking an app"),
        page("POST", f"{at}/revoke", revoke, _WRITE, "Revoke an app"),
    ]


def changes_of(form: Fields) -> connections.Changes:
    """Parse the form. A scope removed from the app is removed in each organization. A newly selected organization
    without scopes gets all scopes of the app.
    """
    scopes, organizations = form.all("scopes"), form.all("orgs")
    sent = {org_id: form.all(f"scopes.{org_id}") for org_id in organizations}
    chosen = {org_id: set(scopes).intersection(names) for org_id, names in sent.items() if names}
    on_servers: dict[str, set[str]] = {}
    for value in form.all(RESOURCE_SCOPES):
        # A server and a scope; without a scope, the server is on the form.
        uri, _, name = value.partition(" ")
        on_servers.setdefault(uri, set()).update([name] if name else [])
    return connections.Changes(scopes, organizations, chosen, resource_scopes=on_servers)


def ordered_scopes(scopes: Collection[str]) -> list[str]:
    return join_scopes(scopes).split()


def name_of(connected: AppConnection) -> str:
    """The app's name as displayed; the host if the name has only hidden characters."""
    return display_name(connected.consent.app_name).strip() or ", ".join(connected.hosts) or connected.client_id


def address_of(client_id: str) -> str:
    """The page of a connected app. A client id may be a URL, so it is encoded as one segment."""
    return f"{PATH}/{quote(client_id, safe='')}"
