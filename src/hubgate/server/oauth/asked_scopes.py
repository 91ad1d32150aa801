"""Which scopes a request asks for: what it names, or what the app has."""

from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.context import OAuth
from hubgate.server.oauth.errors import invalid_scope
from hubgate.server.scopes import NAMES, no_such_scope, parse_scopes

# OpenID Connect knows them, existing clients send them, and here they mean nothing.
IGNORED_SCOPES = frozenset({"offline_access", "address", "phone"})


def scopes_of(oauth: OAuth, app: App) -> tuple[str, ...]:
    """Of the app, less what the operator defines no longer: consent would have no words for it."""
    known = NAMES | {extra.name for extra in oauth.extra_scopes}
    named = dict.fromkeys((*app.scopes, *app.extra_scopes))
    return tuple(name for name in named if name in known)


def asked_scopes(oauth: OAuth, app: App, given: str | None) -> tuple[str, ...]:
    """`given` is the parameter; without it, the app's own or those it names as its default."""
    own = scopes_of(oauth, app)
    if given is None:
        return own if app.default_scopes is None else app.default_scopes
    asked = tuple(name for name in parse_scopes(given) if name not in IGNORED_SCOPES)
    if not asked:
        # Nothing is left of it. To take that for no scope at all would give all the app has.
        raise invalid_scope("That asks for nothing here. Name scopes of this app, or leave scope out.", "scope")
    for name in asked:
        if name not in own:
            raise invalid_scope(_why_not(oauth, name, own))
    return asked


def _why_not(oauth: OAuth, scope: str, own: tuple[str, ...]) -> str:
    if {",", ";", "\t", "\n"} & set(scope):
        return "Separate scopes by spaces."
    if scope in NAMES:
        return f"{scope} is not ticked in this app's settings."
    if scope in {extra.name for extra in oauth.extra_scopes}:
        return f"{scope} was not given to this app. Ask the operator for it in the app's settings."
    return no_such_scope(scope, [*NAMES, *own])
