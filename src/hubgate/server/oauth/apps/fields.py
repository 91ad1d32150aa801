"""Validation of an app's fields; errors use the field names of the API. Pure."""

import ipaddress
import re
from collections.abc import Collection

from msgspec.structs import replace

from hubgate.server.accounts.field_checks import FieldChecks, check_shown_name
from hubgate.server.accounts.roles import Role
from hubgate.server.errors import Unprocessable
from hubgate.server.oauth.apps.model import LONGEST_LIFETIME, App, ExchangeSettings
from hubgate.server.oauth.keys.algorithms import ALGORITHMS
from hubgate.server.oauth.redirects import MATCH_MODES, check_redirect_uri
from hubgate.server.scopes import SCOPE_NAMES, join_scopes, parse_scopes, unknown_scope_message

LONGEST_NAME = 96
LONGEST_HOMEPAGE = 300
MAX_REDIRECT_URIS = 50
SHORTEST_LIFETIME = 60
MAX_NETWORKS = 100
LARGEST_QUOTA = 1_000_000_000
DEFAULT_SCOPES = ("openid", "profile")

_LIFETIME_RULE = f"must be {SHORTEST_LIFETIME} to {LONGEST_LIFETIME:,} seconds."
# Only unreserved characters: the id is used in URLs and before the colon of a Basic header. `new` and `check` are paths
# of pages.
_CLIENT_ID = re.compile(r"(?!(?:new|check)\Z)[A-Za-z0-9][A-Za-z0-9._~-]{0,199}\Z")


def check_client_id(given: str) -> str:
    """Validate a client id chosen by an operator."""
    if not _CLIENT_ID.match(given):
        raise Unprocessable(
            "A client ID must have 1 to 200 letters, digits, dots, dashes, tildes or underscores. "
            "It must start with a letter or digit and cannot be new or check."
        )
    return given


def validate_app(app: App) -> App:
    """Validate and normalize an app; FieldErrors names every invalid field."""
    checks = FieldChecks()
    name = checks.check("name", _name, app.name)
    homepage = checks.check("homepage", _homepage, app.homepage.strip())
    uris = _redirect_uris(checks, "redirectUris", app.redirect_uris)
    after_logout = _redirect_uris(checks, "postLogoutRedirectUris", app.post_logout_redirect_uris)
    _check_scopes(checks, "scopes", app.scopes, app)
    if missing := _first_unknown(app.required_scopes, {*app.scopes, *app.extra_scopes}):
        checks.add_error("requiredScopes", f"{missing[:60]} is required but not among the app's scopes.")
    if not SHORTEST_LIFETIME <= app.token_lifetime <= LONGEST_LIFETIME:
        checks.add_error("tokenLifetime", f"tokenLifetime {_LIFETIME_RULE}")
    if app.id_token_signed_response_alg not in ALGORITHMS:
        checks.add_error("idTokenSignedResponseAlg", f"idTokenSignedResponseAlg must be {' or '.join(ALGORITHMS)}.")
    if app.redirect_match not in MATCH_MODES:
        checks.add_error("redirectMatch", f"redirectMatch must be {' or '.join(MATCH_MODES)}.")
    exchange = _exchange(checks, app)
    checks.raise_errors()
    return replace(
        app,
        name=name,
        homepage=homepage,
        redirect_uris=uris,
        post_logout_redirect_uris=after_logout,
        scopes=_ordered(app.scopes),
        required_scopes=_ordered(app.required_scopes),
        exchange=exchange,
    )


def _redirect_uris(checks: FieldChecks, field: str, given: Collection[str]) -> tuple[str, ...]:
    uris = _unique(given)
    if len(uris) > MAX_REDIRECT_URIS:
        checks.add_error(field, f"An app may have at most {MAX_REDIRECT_URIS} redirect URIs.")
    for uri in uris:
        checks.check(field, check_redirect_uri, uri)
    return uris


def _exchange(checks: FieldChecks, app: App) -> ExchangeSettings:
    limits = app.exchange
    if not SHORTEST_LIFETIME <= limits.duration <= LONGEST_LIFETIME:
        checks.add_error("tokenDuration", f"tokenDuration {_LIFETIME_RULE}")
    _check_scopes(checks, "allowedScopes", limits.scopes or (), app)
    if unknown := _first_unknown(limits.roles or (), [role.label for role in Role]):
        checks.add_error("allowedRoles", f"{unknown[:60]} is not a role.")
    networks = limits.networks or ()
    if len(networks) > MAX_NETWORKS:
        checks.add_error("allowedNetworks", f"At most {MAX_NETWORKS} networks.")
    networks = tuple(checks.check("allowedNetworks", _network, network) for network in networks[:MAX_NETWORKS])
    if limits.daily_quota is not None and not 1 <= limits.daily_quota <= LARGEST_QUOTA:
        checks.add_error("dailyQuota", f"A quota is a number from 1 to {LARGEST_QUOTA:,}, or none.")
    # An empty list means no limit.
    return replace(
        limits,
        scopes=_ordered(limits.scopes or ()) or None,
        roles=_unique(limits.roles or ()) or None,
        networks=_unique(networks) or None,
    )


def _check_scopes(checks: FieldChecks, field: str, names: Collection[str], app: App) -> None:
    known = [*SCOPE_NAMES, *app.extra_scopes]
    unknown = next((name for name in names if name not in known), None)
    if unknown is None:
        return
    if not unknown or {",", " "} & set(unknown):
        checks.add_error(field, "List each scope separately, without commas or spaces.")
        return
    message = unknown_scope_message(unknown, known)
    checks.add_error(field, message if message.endswith("?") else f"{message} Ask the operator for extra scopes.")


def _ordered(scopes: Collection[str]) -> tuple[str, ...]:
    """Scopes in the order they are stored, so that responses before and after storing are equal."""
    return parse_scopes(join_scopes(scopes))


def _unique(names: Collection[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


def _first_unknown(names: Collection[str], known: Collection[str]) -> str:
    return next((name or "An empty name" for name in names if name not in known), "")


def _name(given: str) -> str:
    return check_shown_name("An app's name", given, LONGEST_NAME)


def _homepage(given: str) -> str:
    is_web = given.startswith(("http://", "https://")) and given.isascii() and given.isprintable()
    if given and (not is_web or " " in given or len(given) > LONGEST_HOMEPAGE):
        raise Unprocessable("A home page must be an address such as https://app.example.")
    return given


def _network(given: str) -> str:
    try:
        return str(ipaddress.ip_network(given.strip()))
    except ValueError:
        raise Unprocessable(f"{given[:60]} is not a network such as 203.0.113.0/24.") from None
