"""The content of the consent page, computed from the request, the user and earlier consent."""

from collections.abc import Collection, Sequence

from msgspec import Struct

from hubgate.server.accounts.model import Membership, Person
from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.consent.approval import Selection, fixed_scopes
from hubgate.server.oauth.consent.model import AccessRequest, Consent
from hubgate.server.oauth.context import OAuth
from hubgate.server.oauth.redirects import is_loopback, is_web, shown_host
from hubgate.server.oauth.resource_names import shown_servers
from hubgate.server.oauth.resource_servers.management import owner_name
from hubgate.server.oauth.resource_servers.model import ResourceServer
from hubgate.server.scopes import BUILT_IN_SCOPES, Risk, Scope
from hubgate.server.web.untrusted_text import display_name


class ScopeLine(Struct, frozen=True):
    scope: Scope
    fixed: bool
    ticked: bool = True


class OrganizationLine(Struct, frozen=True):
    membership: Membership
    ticked: bool
    already_granted: bool = False
    requested: bool = False
    # Granted scopes are ticked; empty if scopes cannot be changed one by one.
    scopes: Sequence[ScopeLine] = ()


Groups = Sequence[tuple[Risk, Sequence[ScopeLine]]]


class ServerGroup(Struct, frozen=True):
    """The requested scopes of a registered resource server."""

    server: ResourceServer
    # As @name.
    owner: str
    lines: Sequence[ScopeLine]


class ConsentView(Struct, frozen=True):
    app: App
    person: Person
    # The name as displayed; the host if the name has only hidden characters.
    name: str
    # The app's host: that of its document or of its redirect URI.
    host: str
    # The host that receives the response.
    answer_host: str
    # The servers that the access is for, if not this hub.
    servers: Sequence[str]
    on_this_device: bool
    # The name that the user approved before; empty if it is the same.
    renamed_from: str
    # Whether the redirect targets have changed since then.
    has_new_targets: bool
    groups: Groups
    organizations: Sequence[OrganizationLine]


def consent_view(
    oauth: OAuth,
    access: AccessRequest,
    person: Person,
    before: Consent | None,
    given: Selection | None = None,
) -> ConsentView:
    """Compute the page. `given` is the user's earlier selection if the page is shown again: scopes that are new since
    then are not ticked.
    """
    app, target = access.app, access.redirect_uri
    ticked = access.scopes if given is None else given.scopes
    answer = shown_host(target) if target else ""
    host = app.document_host or answer or _registered_host(app)
    return ConsentView(
        app=app,
        person=person,
        name=display_name(app.name).strip() or host or app.client_id,
        host=host,
        answer_host=answer,
        servers=shown_servers(access.resources, oauth.base_url),
        on_this_device=bool(target) and (is_loopback(target) or not is_web(target)),
        renamed_from=before.app_name if before is not None and before.was_renamed(app.face) else "",
        has_new_targets=before is not None and before.has_new_targets(app.face),
        groups=groups_of(access.scopes, fixed_scopes(access.scopes, app), ticked, oauth.extra_scopes),
        organizations=[] if access.resources else [_line(one, access, before, given) for one in person.memberships],
    )


async def server_groups(oauth: OAuth, access: AccessRequest, given: Selection | None = None) -> list[ServerGroup]:
    """The requested scopes of each registered server, with the server's owner. For `given` see `consent_view`."""
    ticked, fixed = access.scopes if given is None else given.scopes, fixed_scopes(access.scopes, access.app)
    return [
        ServerGroup(server, await owner_name(oauth, server), own_scope_lines(server, access.scopes, fixed, ticked))
        for server in access.servers
    ]


def own_scope_lines(
    server: ResourceServer, names: Collection[str], fixed: Collection[str], ticked: Collection[str]
) -> list[ScopeLine]:
    """The server's own scopes, in its order."""
    return [
        ScopeLine(Scope(scope.name, Risk.CHANGES, scope.text), scope.name in fixed, scope.name in ticked)
        for scope in server.scopes
        if scope.name in names
    ]


def _registered_host(app: App) -> str:
    """The host of the app's homepage or redirect URI, if any, for the device flow, which has no redirect."""
    return next((shown_host(uri) for uri in (app.homepage, *app.redirect_uris) if uri), "")


def groups_of(
    names: Collection[str], fixed: Collection[str], ticked: Collection[str], extra: Sequence[Scope]
) -> Groups:
    """Scopes by risk, the riskiest group first."""
    lines = scope_lines(names, fixed, ticked, extra)
    grouped = [(risk, [line for line in lines if line.scope.risk is risk]) for risk in Risk]
    return [(risk, group) for risk, group in grouped if group]


def scope_lines(
    names: Collection[str], fixed: Collection[str], ticked: Collection[str], extra: Sequence[Scope]
) -> list[ScopeLine]:
    """Built-in scopes in their fixed order, then the operator's."""
    return [
        ScopeLine(scope, scope.name in fixed, scope.name in ticked)
        for scope in (*BUILT_IN_SCOPES, *extra)
        if scope.name in names
    ]


def _line(
    membership: Membership, access: AccessRequest, before: Consent | None, given: Selection | None
) -> OrganizationLine:
    org_id = membership.organization.id
    already_granted = before is not None and org_id in before.organizations
    requested = org_id in access.organizations
    ticked = already_granted or requested if given is None else org_id in given.organizations
    return OrganizationLine(membership, ticked, already_granted, requested)
