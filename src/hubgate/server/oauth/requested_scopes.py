"""The scopes a request asks for: those it names, or the app's default."""

from collections.abc import Sequence

from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.context import OAuth
from hubgate.server.oauth.errors import OAuthError, invalid_scope
from hubgate.server.oauth.resource_names import is_local
from hubgate.server.oauth.resource_servers.model import MAX_SCOPES, ResourceServer, is_scope_name
from hubgate.server.scopes import IDENTITY_SCOPES, IGNORED_SCOPES, SCOPE_NAMES, parse_scopes, unknown_scope_message

_WRONG_SEPARATORS = frozenset(",;\t\n")
_NONE_APPLIES = "None of these scopes applies to the resource."
# The same for registered servers and others: an app that the user has not approved reads this (attack O83).
_OFFER_ON_LOCAL = (
    "Request openid, profile or email: other scopes of a server on a user's computer exist only for the user who has "
    "registered it under APIs you protect."
)


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


def requested_scopes_on(
    oauth: OAuth, app: App, given: str | None, servers: Sequence[ResourceServer]
) -> tuple[str, ...]:
    """Parse the `scope` parameter of a request for other servers: scopes that identify the user, and the servers' own.

    If it is absent, return the app's default and all scopes of the servers. Any other scope is invalid_scope.
    """
    allowed = allowed_on(oauth, app, servers)
    if given is None:
        return _default_on(oauth, app, servers)
    for name in parse_scopes(given):
        if name not in allowed and name not in IGNORED_SCOPES:
            raise invalid_scope(_explain_on(name, _offer(servers)), "scope")
    return _require_some([name for name in parse_scopes(given) if name in allowed], _offer(servers))


def offered_scopes_on(
    oauth: OAuth, app: App, given: str | None, servers: Sequence[ResourceServer], uris: Sequence[str]
) -> tuple[str, ...]:
    """Like `requested_scopes_on`, but other scopes are left out: an app that requests the hub's scopes as well gets a
    consent page without them. `uris` are all servers of the request, registered or not.
    """
    if given is None:
        return _default_on(oauth, app, servers)
    allowed = allowed_on(oauth, app, servers)
    offer = _OFFER_ON_LOCAL if any(map(is_local, uris)) else _offer(servers)
    return _require_some([name for name in parse_scopes(given) if name in allowed], offer)


def possible_scopes_on_local(oauth: OAuth, app: App, given: str | None) -> tuple[str, ...]:
    """Parse the `scope` parameter of a device for a server on the user's computer. Which server that is depends on the
    user who enters the code, so its scopes are checked then; here only scopes of the hub are rejected.
    """
    if given is None:
        return _default_on(oauth, app, ())
    names = [name for name in parse_scopes(given) if name not in IGNORED_SCOPES]
    for name in names:
        if not is_scope_name(name):
            raise invalid_scope(f"{name[:60]} is not a scope's name such as mcp:tools.", "scope")
        if name in SCOPE_NAMES and name not in allowed_on(oauth, app, ()):
            raise invalid_scope(_explain_on(name, _OFFER_ON_LOCAL), "scope")
    if len(names) > MAX_SCOPES + len(IDENTITY_SCOPES):
        raise invalid_scope("A resource server has fewer scopes.", "scope")
    return _require_some(names, _OFFER_ON_LOCAL)


def allowed_on(oauth: OAuth, app: App, servers: Sequence[ResourceServer]) -> frozenset[str]:
    """The scopes that an app may request for other servers; `servers` are the registered ones."""
    own = frozenset(name for server in servers for name in server.scope_names)
    return own | (IDENTITY_SCOPES & set(scopes_of(oauth, app)))


def _default_on(oauth: OAuth, app: App, servers: Sequence[ResourceServer]) -> tuple[str, ...]:
    default = [name for name in requested_scopes(oauth, app, None) if name in IDENTITY_SCOPES]
    return (*default, *dict.fromkeys(scope.name for server in servers for scope in server.scopes))


def no_scopes_on_local() -> OAuthError:
    """The error if none of the requested scopes applies to the server on the user's computer."""
    return invalid_scope(f"{_NONE_APPLIES} {_OFFER_ON_LOCAL}", "scope")


def _require_some(names: list[str], offer: str) -> tuple[str, ...]:
    if not names:
        raise invalid_scope(f"{_NONE_APPLIES} {offer}", "scope")
    return tuple(names)


def _explain_on(scope: str, offer: str) -> str:
    if scope in IDENTITY_SCOPES:
        return f"{scope} is not ticked in this app's settings."
    if scope in SCOPE_NAMES:
        return f"{scope[:60]} is a scope of this hub; the token is for another server. {offer}"
    return f"{scope[:60]} is not a scope of the resource. {offer}"


def _offer(servers: Sequence[ResourceServer]) -> str:
    own = [scope.name for server in servers for scope in server.scopes]
    return f"Request openid, profile, email{''.join(f', {name}' for name in own[:10])}."


def _explain(oauth: OAuth, scope: str, allowed: tuple[str, ...]) -> str:
    if _WRONG_SEPARATORS & set(scope):
        return "Separate scopes with spaces."
    if scope in SCOPE_NAMES:
        return f"{scope} is not ticked in this app's settings."
    if scope in {extra.name for extra in oauth.extra_scopes}:
        return f"{scope} was not granted to this app. Request it from the operator in the app's settings."
    return unknown_scope_message(scope, [*SCOPE_NAMES, *allowed])
