"""Pages for app developers: how sign-in works, with sample code, and a checker for metadata documents."""

from collections.abc import Sequence

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import Caller, caller_of
from hubgate.server.accounts.model import Owner, Person
from hubgate.server.accounts.roles import Role
from hubgate.server.clock import DAY, HOUR, MINUTE, SECOND
from hubgate.server.edge.routes import KIB, Route, own, public
from hubgate.server.errors import TooManyRequests
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
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
from hubgate.server.web.oauth import userinfo
from hubgate.server.web.pages.docs.navigation import side_of
from hubgate.server.web.pages.oauth.quickstart import EXAMPLE, device_curl, snippets
from hubgate.server.web.rendering import Pages
from hubgate.server.web.untrusted_text import clean

SIGN_IN, CHECK = "/docs/sign-in", "/docs/cimd"
MAX_APPS = 200
_TEMPLATE = "docs/cimd.html"
_CONTENTS = (
    ("#register", "Register an app"),
    ("#code", "Sample code"),
    ("#buttons", "Buttons"),
    ("#devices", "Devices"),
    ("#addresses", "Endpoints"),
    ("#tokens", "Tokens"),
    ("#scopes", "Scopes"),
    ("#sign-out", "Sign-out"),
    ("#errors", "Errors"),
    ("#not-offered", "Not offered"),
)
_UNITS = ((DAY, "day"), (HOUR, "hour"), (MINUTE, "minute"), (SECOND, "second"))
# Scope, claims it adds to the ID token, claims it adds to userinfo; the first row is independent of scopes.
_CLAIMS = [("", idtoken.BASE_CLAIMS, userinfo.ALWAYS)] + [
    (scope, idtoken.CLAIMS_BY_SCOPE.get(scope, ()), claims) for scope, claims in userinfo.OF_SCOPE.items()
]


def routes(pages: Pages, oauth: OAuth) -> list[Route]:
    async def sign_in(request: HubRequest) -> Response:
        person = caller_of(request).person
        apps = await apps_of(oauth, person) if person else []
        chosen = choose_app(apps, request.query().get("app", ""))
        return pages.page(
            request,
            "docs/sign_in.html",
            contents=_CONTENTS,
            **side_of(SIGN_IN),
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
            interval=device.INTERVAL_SECONDS,
            registration=oauth.registration,
            cimd_device=oauth.cimd_device,
        )

    async def show_form(request: HubRequest) -> Response:
        return pages.page(request, _TEMPLATE, **side_of(CHECK), url=request.query().get("url", ""), findings=None)

    async def check(request: HubRequest, _: Caller) -> Response:
        """Fetch a document and show the results of all checks. Only for signed-in users: the hub sends a request."""
        url = request.form_fields.get("url").strip()
        if not url:
            errors = {"url": "Enter the address of the document."}
            return pages.page(request, _TEMPLATE, **side_of(CHECK), errors=errors, url=url, findings=None)
        try:
            findings = await oauth.documents.examine(url, caller=request.client_ip)
        except TooManyRequests as error:
            return pages.show_errors(request, _TEMPLATE, error, "url", **side_of(CHECK), url=url, findings=None)
        # Failed checks come first.
        ordered = sorted(findings, key=lambda finding: finding.passed)
        found = [(finding, clean(finding.found)[:LONGEST_FOUND]) for finding in ordered]
        return pages.page(request, _TEMPLATE, **side_of(CHECK), url=url, findings=found)

    page = Surface.PAGE
    return [
        Route("GET", SIGN_IN, public(sign_in), page, "How to add sign-in to an app"),
        Route("GET", CHECK, public(show_form), page, "The form that checks a metadata document"),
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
        ("Code", _format_duration(CODE_LIFETIME)),
        ("Device code", _format_duration(device.LIFETIME)),
        ("ID token", _format_duration(idtoken.LIFETIME_SECONDS * SECOND)),
        (
            "Access token",
            f"{_format_duration(app.token_lifetime * SECOND)}, as set for the app and returned in expires_in",
        ),
        ("Refresh token", f"{_format_duration(REFRESH_LIFETIME)} after its last use"),
    ]


def _format_duration(duration: int) -> str:
    """Format a duration in the largest unit that divides it."""
    unit, name = next((unit, name) for unit, name in _UNITS if duration % unit == 0)
    return f"{duration // unit:,} {name}{'' if duration == unit else 's'}"


async def apps_of(oauth: OAuth, person: Person) -> Sequence[App]:
    """The apps that the user owns or administers."""
    found = list(await management.of_owner(oauth, Owner(user_id=person.user.id)))
    for membership in person.memberships:
        if membership.role is Role.ADMIN and len(found) < MAX_APPS:
            found += await management.of_owner(oauth, Owner(org_id=membership.organization.id))
    return found[:MAX_APPS]


def choose_app(apps: Sequence[App], client_id: str) -> App:
    """The requested app, if it is one of `apps`; without a request the first one; otherwise the example."""
    default = apps[0] if apps and not client_id else EXAMPLE
    return next((app for app in apps if app.client_id == client_id), default)
