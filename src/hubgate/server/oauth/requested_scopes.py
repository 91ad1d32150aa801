"""The scopes a request asks for: those it names, or the app's default."""

from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.context import OAuth
from hubgate.server.oauth.errors import invalid_scope
from hubgate.server.scopes import SCOPE_NAMES, parse_scopes, unknown_scope_message

# Defined by OpenID Connect and sent by existing clients; ignored here.
IGNORED_SCOPES = frozenset({"offline_access", "address", "phone"})
_WRONG_SEPARATORS = frozenset(",;\t\n")


def scopes_of(oauth: OAuth, app: App) -> tuple[str, ...]:
    """The app's scopes, without those the operator no longer defines: the consent page could not describe them."""
    known = SCOPE_NAMES | {extra.name for extra in oauth.extra_scopes}
    names = dict.fromkeys((*app.scopes, *app.extra_scopes))
    return tuple(name for name in names if name in known)


def requested_scopes(oauth: OAuth, app: App, given: str | None) -> tuple[str, ...]:
    """Parse the `scope` parameter; if it is absent, return the app's default scopes, or else all its scopes."""
    allowed = scopes_of(oauth, app)
    if given is None:
        return allowed if app.default_scopes is None else app.default_scopes
    ignored = IGNORED_SCOPES | oauth.unavailable_scopes if app.first_party else IGNORED_SCOPES
    requested = tuple(name for name in parse_scopes(given) if name not in ignored)
    if not requested:
        # Only ignored scopes were sent. Treating that as an absent parameter would grant all the app's scopes.
        raise invalid_scope(
            "None of these scopes exists on this hub. Request scopes of this app, or omit scope.", "scope"
        )
    for name in requested:
        if name not in allowed:
            raise invalid_scope(_explain(oauth, name, allowed))
    return requested


def known_scopes(oauth: OAuth, app: App, given: str | None) -> tuple[str, ...]:
    """Like `requested_scopes`, but ignores names that this hub does not know if others remain.

    For requests that a user approves on a page, which lists the scopes. Clients for several servers send all they know.
    """
    if given is None:
        return requested_scopes(oauth, app, None)
    names = parse_scopes(given)
    known = SCOPE_NAMES | {extra.name for extra in oauth.extra_scopes}
    kept = [name for name in names if name in known | IGNORED_SCOPES or _WRONG_SEPARATORS & set(name)]
    return requested_scopes(oauth, app, " ".join(kept if known.intersection(kept) else names))


def _explain(oauth: OAuth, scope: str, allowed: tuple[str, ...]) -> str:
    if _WRONG_SEPARATORS & set(scope):
        return "Separate scopes with spaces."
    if scope in SCOPE_NAMES:
        return f"{scope} is not ticked in this app's settings."
    if scope in {extra.name for extra in oauth.extra_scopes}:
        return f"{scope} was not granted to this app. Request it from the operator in the app's settings."
    return unknown_scope_message(scope, [*SCOPE_NAMES, *allowed])
