"""Pages for app developers: how sign-in works, with sample code, and a checker for metadata documents."""

from collections.abc import Sequence

from starlette.responses import Response

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import Caller, caller_of
from hubgate.server.accounts.model import Owner, Person
from hubgate.server.accounts.roles import Role
from hubgate.server.clock import DAY, HOUR, MINUTE, SECOND
from hubgate.server.edge.routes import KIB, Route, own, public
from hubgate.server.errors import TooManyRequests
from hubgate.server.http.request import HubRequest
from hubgate.server.http.surface import Surface
from hubgate.server.oauth.apps import management
from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.cimd.rules import LONGEST_FOUND
from hubgate.server.oauth.context import OAuth
from hubgate.server.oauth.device import model as device
from hubgate.server.oauth.grants.registry import GRANTS
from hubgate.server.oauth.tokens import idtoken
from hubgate.server.oauth.tokens.model import CODE_LIFETIME, REFRESH_LIFETIME
from hubgate.server.scopes import BUILT_IN_SCOPES, Risk
from hubgate.server.web.buttons import LABEL, buttons
from hubgate.server.web.foreign_text import clean
from hubgate.server.web.oauth import userinfo
from hubgate.server.web.pages.oauth.quickstart import EXAMPLE, device_curl, snippets
from hubgate.server.web.rendering import Pages

INDEX, SIGN_IN, CHECK = "/docs", "/docs/sign-in", "/docs/cimd"
MOST_APPS = 200
_TEMPLATE = "docs/cimd.html"
_CONTENTS = (
    ("#register", "Register an app"),
    ("#code", "Sample code"),
    ("#buttons", "Buttons"),
    ("#devices", "Devices"),
    ("#addresses", "Endpoints"),
    ("#tokens", "Tokens"),
    ("#scopes", "Scopes"),
    ("#errors", "Errors"),
)
_UNITS = ((DAY, "day"), (HOUR, "hour"), (MINUTE, "minute"), (SECOND, "second"))
# Scope, claims it adds to the ID token, claims it adds to userinfo; the first row is independent of scopes.
_CLAIMS = [("", idtoken.BASE_CLAIMS, userinfo.ALWAYS)] + [
    (scope, idtoken.CLAIMS_BY_SCOPE.get(scope, ()), claims) for scope, claims in userinfo.OF_SCOPE.items()
]


def routes(pages: Pages, oauth: OAuth) -> list[Route]:
    async def index(request: HubRequest) -> Response:
        return pages.page(request, "docs/index.html")

    async def sign_in(request: HubRequest) -> Response:
        person = caller_of(request).person
        apps = await _apps(oauth, person) if person else []
        wanted = request.query().get("app", "")
        chosen = next((app for app in apps if app.client_id == wanted), apps[0] if apps and not wanted else EXAMPLE)
        return pages.page(
            request,
            "docs/sign_in.html",
            contents=_CONTENTS,
            apps=apps,
            chosen=chosen,
            is_example=chosen is EXAMPLE,
            snippets=snippets(oauth.base_url, chosen),
            buttons=list(buttons().values()),
            label=LABEL,
            scopes=[(risk, [scope for scope in BUILT_IN_SCOPES if scope.risk is risk]) for risk in Risk],
            grants={grant.type: grant.parameters for grant in GRANTS.values()},
            lifetimes=_lifetimes(chosen),
            claims=_CLAIMS,
            organization=userinfo.OF_ORGANIZATION,
            device_code=device_curl(oauth.base_url, chosen),
            slower_by=device.SLOW_DOWN_SECONDS,
            interval=device.INTERVAL,
        )

    async def begin(request: HubRequest) -> Response:
        return pages.page(request, _TEMPLATE, url=request.query().get("url", ""), findings=None)

    async def check(request: HubRequest, _: Caller) -> Response:
        """For users only: the hub fetches the document they name and shows what it found."""
        url = request.form_fields.get("url").strip()
        if not url:
            errors = {"url": "Give the address of the document."}
            return pages.page(request, _TEMPLATE, errors=errors, url=url, findings=None)
        try:
            findings = await oauth.documents.examine(url, caller=request.client_ip)
        except TooManyRequests as error:
            return pages.show_errors(request, _TEMPLATE, error, "url", url=url, findings=None)
        # Failed checks come first.
        ordered = sorted(findings, key=lambda finding: finding.holds)
        found = [(finding, clean(finding.found)[:LONGEST_FOUND]) for finding in ordered]
        return pages.page(request, _TEMPLATE, url=url, findings=found)

    page = Surface.PAGE
    return [
        Route("GET", INDEX, public(index), page, "What there is to read"),
        Route("GET", SIGN_IN, public(sign_in), page, "How to sign people in to an app"),
        Route("GET", CHECK, public(begin), page, "The form that checks a metadata document"),
        Route(
            "POST",
            CHECK,
            own(Action.ACCOUNT_READ_SETTINGS, check),
            page,
            "Check a metadata document",
            body_cap=16 * KIB,
        ),
    ]


def _lifetimes(app: App) -> list[tuple[str, str]]:
    return [
        ("Code", _span(CODE_LIFETIME)),
        ("Code of a device", _span(device.LIFETIME)),
        ("ID token", _span(idtoken.LIFETIME_SECONDS * SECOND)),
        ("Access token", f"{_span(app.token_lifetime * SECOND)}, as the app's settings say; expires_in repeats it"),
        ("Refresh token", f"{_span(REFRESH_LIFETIME)} since its last use"),
    ]


def _span(duration: int) -> str:
    """Format a duration in the largest unit that divides it."""
    unit, name = next((unit, name) for unit, name in _UNITS if duration % unit == 0)
    return f"{duration // unit:,} {name}{'' if duration == unit else 's'}"


async def _apps(oauth: OAuth, person: Person) -> Sequence[App]:
    """The apps that the user owns or administers."""
    found = list(await management.of_owner(oauth, Owner(user_id=person.user.id)))
    for membership in person.memberships:
        if membership.role is Role.ADMIN and len(found) < MOST_APPS:
            found += await management.of_owner(oauth, Owner(org_id=membership.organization.id))
    return found[:MOST_APPS]
