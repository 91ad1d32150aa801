"""Conversion between an app and the form of its settings. Fields are named as in the API, so errors apply to both."""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from hubgate.server.accounts.roles import Role
from hubgate.server.http.forms import Fields
from hubgate.server.oauth.apps.fields import DEFAULT_SCOPES
from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.keys.algorithms import ALGORITHMS
from hubgate.server.oauth.redirects import EXACT, ORIGIN
from hubgate.server.scopes import BUILT_IN_SCOPES, IDENTITY_SCOPES, Risk, Scope

EMPTY_APP = App(client_id="", name="", scopes=DEFAULT_SCOPES, confidential=True)
MATCHES = (
    (EXACT, "Exactly as registered"),
    (ORIGIN, "Any path and query under the same origin, for hosted apps"),
)
SIGNATURES = tuple((name, name) for name in ALGORITHMS)
# Scopes that most apps request. The others are under "More scopes".
_COMMON = frozenset({"openid", "profile", "email", "read-repos", "write-repos"})
ROLES = tuple((role.label, role.label.capitalize()) for role in Role)
_HOUR, _DAY = 60 * 60, 24 * 60 * 60
_LIFETIMES = {_HOUR: "1 hour", 8 * _HOUR: "8 hours", _DAY: "1 day", 7 * _DAY: "7 days", 30 * _DAY: "30 days"}
OVERLAPS = (
    ("0", "None: the old secret stops working at once"),
    (str(_HOUR), "1 hour"),
    *((str(days * _DAY), f"{days} day{'s' if days > 1 else ''}") for days in range(1, 8)),
)


class ScopeLine(Struct, frozen=True):
    scope: Scope
    ticked: bool
    required: bool
    # Every sign-in includes the scope, so it cannot be marked as required.
    always: bool


Groups = Sequence[tuple[Risk, Sequence[ScopeLine]]]


class ScopeChoice(Struct, frozen=True):
    """Every scope that the app may have, the riskiest group first."""

    common: Groups
    rare: Groups
    # Whether the list of rare scopes is open, because one of them is ticked.
    opened: bool


def scope_choice(app: App, extra: Sequence[Scope]) -> ScopeChoice:
    # Operator-defined scopes are listed with the common ones, because the app's owner requested them.
    own = [_line(scope, app) for scope in extra if scope.name in app.extra_scopes]
    common = [_line(scope, app) for scope in BUILT_IN_SCOPES if scope.name in _COMMON]
    rare = [_line(scope, app) for scope in BUILT_IN_SCOPES if scope.name not in _COMMON]
    return ScopeChoice(_grouped([*common, *own]), _grouped(rare), any(line.ticked or line.required for line in rare))


def _grouped(lines: Sequence[ScopeLine]) -> Groups:
    grouped = [(risk, [line for line in lines if line.scope.risk is risk]) for risk in Risk]
    return [(risk, group) for risk, group in grouped if group]


def _line(scope: Scope, app: App) -> ScopeLine:
    name = scope.name
    return ScopeLine(scope, name in app.scopes, name in app.required_scopes, name in IDENTITY_SCOPES)


def lifetimes(seconds: int) -> list[tuple[str, str]]:
    """Lifetimes to choose from, including the current one, which the API may have set to any value."""
    return [(str(value), format_lifetime(value)) for value in sorted({*_LIFETIMES, seconds})]


def format_lifetime(seconds: int) -> str:
    return _LIFETIMES.get(seconds, f"{seconds:,} seconds")


def apply_form(app: App, form: Fields) -> App:
    """Return the app with the form applied; validation happens on save. Required scopes are requested too."""
    required = form.all("requiredScopes")
    return replace(
        app,
        name=form.get("name"),
        homepage=form.get("homepage"),
        redirect_uris=_lines(form.get("redirectUris")),
        post_logout_redirect_uris=_lines(form.get("postLogoutRedirectUris")),
        scopes=tuple(dict.fromkeys([*form.all("scopes"), *required])),
        required_scopes=tuple(required),
        token_lifetime=_number(form, "tokenLifetime"),
        require_pkce=form.get("requirePkce") == "on",
        refresh_tokens=form.get("refreshTokens") == "on",
        groups_claim=form.get("groupsClaim") == "on",
        id_token_signed_response_alg=form.get("idTokenSignedResponseAlg") or app.id_token_signed_response_alg,
        redirect_match=form.get("redirectMatch"),
    )


def limitable_scopes(app: App) -> list[tuple[str, bool]]:
    """Scopes to choose from, and whether the app has each. A scope that the app no longer has stays in the list: if the
    last ticked scope were missing, saving the form would remove the limit.
    """
    own = (*app.scopes, *app.extra_scopes)
    return [(name, name in own) for name in dict.fromkeys((*own, *(app.exchange.scopes or ())))]


def apply_limits(app: App, form: Fields) -> App:
    """Return the app with the token exchange limits from the form applied; validation happens on save."""
    quota = form.get("dailyQuota").strip()
    paused = form.get("paused") == "on"
    if paused == (form.get("wasPaused") == "on"):
        # Unchanged on this form: another admin may have paused the app since it was opened.
        paused = app.exchange.paused
    limits = replace(
        app.exchange,
        duration=_number(form, "tokenDuration"),
        scopes=tuple(form.all("allowedScopes")),
        roles=tuple(form.all("allowedRoles")),
        networks=_lines(form.get("allowedNetworks")),
        daily_quota=_number(form, "dailyQuota") if quota else None,
        paused=paused,
    )
    return replace(app, exchange=limits)


def _lines(text: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in text.splitlines() if line.strip())


def _number(form: Fields, name: str) -> int:
    """Parse a number; anything else is 0, which no field accepts."""
    given = form.get(name).strip()
    return int(given) if given.isascii() and given.isdigit() and len(given) <= 12 else 0
