"""What the consent page shows, worked out from the request, the user and what was allowed before. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from hubgate.server.accounts.model import Membership, Person
from hubgate.server.oauth.authorize.request import AuthorizationRequest
from hubgate.server.oauth.consent.deciding import fixed_scopes
from hubgate.server.oauth.consent.model import Consent
from hubgate.server.oauth.redirects import is_loopback, shown_host
from hubgate.server.scopes import BUILT_IN, Risk, Scope


@dataclass(frozen=True)
class ScopeLine:
    scope: Scope
    fixed: bool


@dataclass(frozen=True)
class OrganizationLine:
    membership: Membership
    ticked: bool
    # "Already allowed", "Asked for by {App}" or nothing.
    why: str


@dataclass(frozen=True)
class ConsentView:
    request: AuthorizationRequest
    person: Person
    # Where the app says it lives: its document, or the address it is answered at.
    host: str
    # Where the answer goes, when that is another host.
    other_host: str
    loopback: bool
    changed: bool
    groups: Sequence[tuple[Risk, Sequence[ScopeLine]]]
    organizations: Sequence[OrganizationLine]

    @property
    def answer_host(self) -> str:
        return shown_host(self.request.to.redirect_uri)


def consent_view(
    request: AuthorizationRequest, person: Person, before: Consent | None, extra: Sequence[Scope]
) -> ConsentView:
    app, target = request.app, request.to.redirect_uri
    answer = shown_host(target)
    host = app.document_host or answer
    return ConsentView(
        request=request,
        person=person,
        host=host,
        other_host=answer if answer != host else "",
        loopback=is_loopback(target) or urlsplit(target).scheme not in ("http", "https"),
        changed=before is not None and before.face != app.face,
        groups=_groups(request, extra),
        organizations=[_line(membership, request, before) for membership in person.memberships],
    )


def _groups(request: AuthorizationRequest, extra: Sequence[Scope]) -> list[tuple[Risk, list[ScopeLine]]]:
    fixed = fixed_scopes(request)
    known = {scope.name: scope for scope in (*BUILT_IN, *extra)}
    asked = [known[name] for name in known if name in request.scopes]
    grouped = [(risk, [ScopeLine(s, s.name in fixed) for s in asked if s.risk is risk]) for risk in Risk]
    return [(risk, lines) for risk, lines in grouped if lines]


def _line(membership: Membership, request: AuthorizationRequest, before: Consent | None) -> OrganizationLine:
    org_id = membership.organization.id
    if before is not None and org_id in before.organizations:
        return OrganizationLine(membership, True, "Already allowed")
    if org_id in request.organizations:
        return OrganizationLine(membership, True, f"Asked for by {request.app.name}")
    return OrganizationLine(membership, False, "")
