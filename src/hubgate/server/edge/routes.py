"""Routes and endpoints: the action a handler needs, the lookup of its resource, and the permission check (attack O77).

    Route("PUT", path, Endpoint(Action.ORG_WRITE_MEMBERS, organization(accounts, path), handler), Surface.API, "...")

A route takes only an endpoint, so a handler without checks is still guarded: it runs only after its target was found
and the caller has permission for the declared action. Public routes use `public(handler)`.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from functools import cache, cached_property
from typing import Any, Generic, NamedTuple, TypeVar, final

import msgspec
from msgspec.structs import replace

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import Caller, caller_of
from hubgate.server.access.decision import ask_to_sign_in
from hubgate.server.access.identity import CredentialKind, Identity
from hubgate.server.access.policy import decide, refuse_missing
from hubgate.server.access.resource import HUB, Account, Collection, Hub, Organization, Repo, Resource
from hubgate.server.access.rule import RequiredCredential
from hubgate.server.http.asgi import ASGIApp
from hubgate.server.http.headers import ALLOWED_HEADERS, HeaderPolicy, policy_of
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import RedirectResponse
from hubgate.server.http.surface import Surface

T = TypeVar("T")

# Every response is itself an ASGI application.
PublicHandler = Callable[[HubRequest], Awaitable[ASGIApp]]
Handler = Callable[[HubRequest, T], Awaitable[ASGIApp]]


class Check(NamedTuple):
    """A permission check: an action on a resource."""

    action: Action
    resource: Resource


class Target(msgspec.Struct, Generic[T], frozen=True):
    """The target of a request.

    subject         the value that the handler receives
    resource        the resource that the endpoint's action is checked on
    action          the declared action to check, if it depends on the request; None: the endpoint's action
    further_checks  in each group one check must pass, and the first check provides the error
    hint            a sentence added to that error
    moved_to        the current address, if the request used a former name: reads are redirected there
    """

    subject: T
    resource: Resource
    action: Action | None = None
    further_checks: tuple[tuple[Check, ...], ...] = ()
    hint: str = ""
    moved_to: str = ""


class Missing(msgspec.Struct, frozen=True):
    """A resource that does not exist. The error is the same as for a private resource, so names stay secret."""

    placeholder: Repo | Collection


class Located(msgspec.Struct, Generic[T], frozen=True):
    """A resource whose target depends on more than the address.

    `target` is called after the permission check for the endpoint's action: it may read and reject the body or the
    query, which would reveal to other callers that the resource exists.
    """

    resource: Resource
    target: Callable[[], Awaitable[Target[T]]]


class Locator(msgspec.Struct, Generic[T], frozen=True):
    """Finds the resource of a request. `on` lists every kind of resource that `find` may return."""

    on: tuple[type, ...]
    find: Callable[[HubRequest], Awaitable[Target[T] | Located[T] | Missing]]


@final
class Endpoint:
    """An action, a locator and a handler. `further` lists other actions that the locator may choose or add."""

    def __init__(
        self, action: Action, locator: Locator[T], handler: Handler[T], further: tuple[Action, ...] = ()
    ) -> None:
        # mypy checks this too; an endpoint that slipped past mypy must not be served.
        if not isinstance(action, Action):
            raise TypeError(f"An endpoint needs an Action, not {action!r}.")
        if not isinstance(locator, Locator):
            raise TypeError(f"An endpoint needs a Locator for the resources of {action.rule.name}.")
        self.action = action
        self.actions = (action, *further)
        self._locator: Locator[Any] = locator
        self._handler: Handler[Any] = handler
        # No resource to find and no permission to check.
        self._is_open = action.rule.credential is RequiredCredential.NONE and locator is THE_HUB
        _require_matching_kinds(self.actions, locator.on)
        # Anonymous callers are rejected without a lookup and without reading the body, except on repos and collections:
        # these may be public or hidden.
        self._asks_to_sign_in = _need_sign_in(self.actions)

    async def __call__(self, request: HubRequest) -> ASGIApp:
        if self._is_open:
            return await self._handler(request, None)
        identity = caller_of(request).identity
        if self._asks_to_sign_in and identity.kind is CredentialKind.ANONYMOUS:
            raise ask_to_sign_in(self.action.rule.verb_phrase).error()
        found = await self._locator.find(request)
        if isinstance(found, Missing):
            refuse_missing(identity, self.action, found.placeholder)
        if isinstance(found, Located):
            decide(identity, self.action, found.resource).enforce()
            target = await found.target()
        else:
            target = found
            decide(identity, self._require_declared(target.action or self.action), target.resource).enforce()
        for group in target.further_checks:
            for check in group:
                self._require_declared(check.action)
        enforce_further_checks(identity, target)
        if target.moved_to and request.method in ("GET", "HEAD"):
            # Existing clients expect 307 for a renamed resource.
            return RedirectResponse(target.moved_to, 307)
        return await self._handler(request, target.subject)

    def _require_declared(self, action: Action) -> Action:
        if action not in self.actions:
            raise TypeError(f"This endpoint does not declare {action.rule.name}.")
        return action


# Cached: hundreds of endpoints have few combinations of actions.
@cache
def _need_sign_in(actions: tuple[Action, ...]) -> bool:
    return all(
        declared.rule.credential is not RequiredCredential.NONE
        and set(declared.rule.on) <= {Account, Organization, Hub}
        for declared in actions
    )


@cache
def _require_matching_kinds(actions: tuple[Action, ...], found: tuple[type, ...]) -> None:
    """Require that each action applies to a kind of resource that the locator finds, and each kind to an action."""
    for declared in actions:
        if not set(declared.rule.on) & set(found):
            raise TypeError(f"{declared.rule.name} does not apply to the resources that this locator finds.")
    covered = {kind for declared in actions for kind in declared.rule.on}
    if uncovered := set(found) - covered:
        raise TypeError(f"{actions[0].rule.name} does not apply to {', '.join(kind.__name__ for kind in uncovered)}.")


def enforce_further_checks(identity: Identity, target: Target[Any]) -> None:
    """Enforce the further checks of a target: return if all groups allow this caller, otherwise raise the error."""
    for first, *others in target.further_checks:
        decision = decide(identity, *first)
        if not decision.allowed and not any(decide(identity, *other).allowed for other in others):
            raise replace(decision, reason=f"{decision.reason} {target.hint}".rstrip()).error()


_HUB_TARGET = Target(None, HUB)


async def _find_hub(_: HubRequest) -> Target[None]:
    return _HUB_TARGET


THE_HUB: Locator[None] = Locator((Hub,), _find_hub)


def without_subject(handler: PublicHandler) -> Handler[None]:
    async def handle(request: HubRequest, _: None) -> ASGIApp:
        return await handler(request)

    return handle


def public(handler: PublicHandler) -> Endpoint:
    """An endpoint for anyone. On API routes credentials are not even read."""
    return Endpoint(Action.HUB_PUBLIC, THE_HUB, without_subject(handler))


async def _find_own_account(request: HubRequest) -> Target[Caller]:
    caller = caller_of(request)
    return Target(caller, Account(caller.user.id))


OWN_ACCOUNT = Locator((Account,), _find_own_account)


def own(action: Action, handler: Handler[Caller]) -> Endpoint:
    """An endpoint on the caller's own account; the address cannot name another account. Visitors are asked to sign
    in."""
    return Endpoint(action, OWN_ACCOUNT, handler)


KIB = 1024
MIB = 1024 * KIB
# The largest body that is read into memory.
MAX_IN_MEMORY = 16 * MIB

PARAMETER = re.compile(r"\{(\w+)(:path)?\}([\w.-]*)\Z")


class Query(msgspec.Struct, frozen=True):
    """A documented query parameter."""

    name: str
    meaning: str
    schema: Mapping[str, Any] = msgspec.field(default_factory=lambda: {"type": "string"})
    required: bool = False


class Route(msgspec.Struct, frozen=True, dict=True):
    method: str
    path: str
    endpoint: Endpoint
    surface: Surface
    summary: str
    query: tuple[Query, ...] = ()
    body: Any = None
    body_type: str = "application/json"
    # Documented responses: status to (meaning, shape of the JSON body or None).
    answers: Mapping[int, tuple[str, Any]] = msgspec.field(default_factory=dict)
    body_cap: int = MIB
    body_seconds: float = 30.0
    # The handler reads the body while it is received, then looks up the caller again.
    streams: bool = False
    # A page's POST requires the CSRF field; False only for an endpoint with its own protection.
    csrf: bool = True
    # A page's POST for scripts too: with a bearer token instead of session and CSRF field. Browsers do not send such a
    # token by themselves, so no other site can cause the request.
    accepts_token: bool = False
    # A page's POST whose form has files: the edge reads its fields and checks the CSRF field; the handler reads files.
    has_files: bool = False
    # The address may contain a secret, in its path or in a redirect target: no referrer is sent to any page.
    secret_address: bool = False
    # The page's form may redirect to an app on another origin.
    leaves_hub: bool = False
    # Also accepts tokens that were requested for another server (RFC 8707).
    any_audience: bool = False
    # A form may contain the token as `access_token` (RFC 6750, section 2.2).
    accepts_body_token: bool = False
    # The headers that browser apps of other origins may send.
    request_headers: str = ALLOWED_HEADERS
    # Also accepts a WebSocket: the handler's response then gets the connection.
    websocket: bool = False
    # Tried only if no other route matches: fixed segments give it no precedence.
    is_fallback: bool = False

    def __post_init__(self) -> None:
        # mypy checks this too; a route that slipped past mypy must not be served.
        if not isinstance(self.endpoint, Endpoint):
            raise TypeError(f"{self.method} {self.path} takes an Endpoint: an action, a locator and a handler.")
        if self.body_cap > MAX_IN_MEMORY and not self.streams:
            raise TypeError(f"{self.method} {self.path} would read a body of {self.body_cap:,} bytes into memory.")

    def is_by_token(self, request: HubRequest) -> bool:
        """Whether the caller of this page presents a token instead of a session."""
        return self.accepts_token and request.headers.get("authorization", "").lower().startswith("bearer ")

    @property
    def action(self) -> Action:
        """The endpoint's action; `endpoint.actions` lists all actions if the action depends on the request."""
        return self.endpoint.action

    @cached_property
    def header_policy(self) -> HeaderPolicy:
        return policy_of(self.surface, self.secret_address, self.leaves_hub)

    @cached_property
    def parameters(self) -> list[str]:
        """The names of the path parameters, in order."""
        return [match.group(1) for part in self.path.split("/") if (match := PARAMETER.match(part))]
