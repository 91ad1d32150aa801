"""Routes, and what guards them: the action a handler needs, how the resource is found, the judgement, the call (O77).

    Route("PUT", path, Endpoint(Action.ORG_WRITE_MEMBERS, organization(accounts, path), handler), Surface.API, "...")

A route takes an endpoint and nothing else, so a handler that checks nothing is still guarded: it only runs once its
target was found and the caller may do what the route declares. Public routes say `public(handler)`.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Generic, NamedTuple, TypeVar, final

import msgspec
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import Caller, caller_of
from hubgate.server.access.decision import ask_to_sign_in
from hubgate.server.access.identity import Identity, Kind
from hubgate.server.access.policy import decide, refuse_missing
from hubgate.server.access.resource import HUB, Account, Collection, Hub, Organization, Repo, Resource
from hubgate.server.access.rule import Credential
from hubgate.server.http.headers import Manner
from hubgate.server.http.request import HubRequest
from hubgate.server.http.surface import Surface

T = TypeVar("T")

# Every Starlette response is itself an ASGI application.
PublicHandler = Callable[[HubRequest], Awaitable[ASGIApp]]
Handler = Callable[[HubRequest, T], Awaitable[ASGIApp]]


class Check(NamedTuple):
    """One question for the policy."""

    action: Action
    resource: Resource


class Target(msgspec.Struct, Generic[T], frozen=True):
    """What a request is about.

    subject     what the handler receives
    resource    what the endpoint's action is judged on
    action      which of the declared actions that is, where it depends on the request; None: the endpoint's own
    also        checks that are needed as well: of each group one must allow it, the first gives the refusal
    hint        a sentence that is added to such a refusal
    moved_to    the present address, where the request used a former name: reading is redirected there
    """

    subject: T
    resource: Resource
    action: Action | None = None
    also: tuple[tuple[Check, ...], ...] = ()
    hint: str = ""
    moved_to: str = ""


class Missing(msgspec.Struct, frozen=True):
    """There is no such resource. Refused as a private one in the same namespace would be, so that names stay secret."""

    stand_in: Repo | Collection


class Located(msgspec.Struct, Generic[T], frozen=True):
    """A resource, where the target follows from more than the address.

    `target` is called once the caller may do the endpoint's own action: it may read the body or the query and reject
    them, which would tell others that there is such a resource.
    """

    resource: Resource
    target: Callable[[], Awaitable[Target[T]]]


@dataclass(frozen=True)
class Locator(Generic[T]):
    """How the resource of a request is found. `on` names every kind of resource that `find` may return."""

    on: tuple[type, ...]
    find: Callable[[HubRequest], Awaitable[Target[T] | Located[T] | Missing]]


@final
class Endpoint:
    """`further` are the actions, besides `action`, that its locator may choose or add."""

    def __init__(
        self, action: Action, locator: Locator[T], handler: Handler[T], further: tuple[Action, ...] = ()
    ) -> None:
        # mypy says the same; an endpoint that slipped past it must not be served.
        if not isinstance(action, Action):
            raise TypeError(f"An endpoint needs an Action, not {action!r}.")
        if not isinstance(locator, Locator):
            raise TypeError(f"An endpoint needs a Locator that finds what {action.rule.name} is judged on.")
        self.action = action
        self.actions = (action, *further)
        self._locator: Locator[Any] = locator
        self._handler: Handler[Any] = handler
        # Nothing to find and nothing to judge.
        self._is_open = action.rule.credential is Credential.NONE and locator is THE_HUB
        # For a visitor nothing is looked up and no body is read where the answer is known: only what belongs to repos
        # and collections may be public or hidden.
        self._asks_to_sign_in = all(
            declared.rule.credential is not Credential.NONE and set(declared.rule.on) <= {Account, Organization, Hub}
            for declared in self.actions
        )
        for declared in self.actions:
            if not set(declared.rule.on) & set(locator.on):
                raise TypeError(f"{declared.rule.name} is never judged on what this locator finds.")
        judged = {kind for declared in self.actions for kind in declared.rule.on}
        if unjudged := set(locator.on) - judged:
            raise TypeError(f"{action.rule.name} is not judged on {', '.join(kind.__name__ for kind in unjudged)}.")

    async def __call__(self, request: HubRequest) -> ASGIApp:
        if self._is_open:
            return await self._handler(request, None)
        identity = caller_of(request).identity
        if self._asks_to_sign_in and identity.kind is Kind.ANONYMOUS:
            raise ask_to_sign_in(self.action.rule.does).error()
        found = await self._locator.find(request)
        if isinstance(found, Missing):
            refuse_missing(identity, self.action, found.stand_in)
        if isinstance(found, Located):
            decide(identity, self.action, found.resource).enforce()
            target = await found.target()
        else:
            target = found
            decide(identity, self._declared(target.action or self.action), target.resource).enforce()
        for group in target.also:
            for check in group:
                self._declared(check.action)
        require_also(identity, target)
        if target.moved_to and request.method in ("GET", "HEAD"):
            # 307, which existing clients expect of a renamed resource.
            return RedirectResponse(target.moved_to, 307)
        return await self._handler(request, target.subject)

    def _declared(self, action: Action) -> Action:
        if action not in self.actions:
            raise TypeError(f"This endpoint does not declare {action.rule.name}.")
        return action


def require_also(identity: Identity, target: Target[Any]) -> None:
    """Return if this caller may do what is needed besides, otherwise raise the refusal."""
    for first, *others in target.also:
        decision = decide(identity, *first)
        if not decision.allowed and not any(decide(identity, *other).allowed for other in others):
            raise replace(decision, reason=f"{decision.reason} {target.hint}".rstrip()).error()


_ANYONE = Target(None, HUB)


async def _find_hub(_: HubRequest) -> Target[None]:
    return _ANYONE


THE_HUB: Locator[None] = Locator((Hub,), _find_hub)


def without_subject(handler: PublicHandler) -> Handler[None]:
    async def handle(request: HubRequest, _: None) -> ASGIApp:
        return await handler(request)

    return handle


def public(handler: PublicHandler) -> Endpoint:
    """For anyone. On the API no credential is even read."""
    return Endpoint(Action.HUB_PUBLIC, THE_HUB, without_subject(handler))


async def _find_own_account(request: HubRequest) -> Target[Caller]:
    caller = caller_of(request)
    return Target(caller, Account(caller.user.id))


OWN_ACCOUNT = Locator((Account,), _find_own_account)


def own(action: Action, handler: Handler[Caller]) -> Endpoint:
    """About the caller's own account: nobody names another's there. A visitor is asked to sign in."""
    return Endpoint(action, OWN_ACCOUNT, handler)


KIB = 1024
MIB = 1024 * KIB

PARAMETER = re.compile(r"\{(\w+)(:path)?\}([\w.-]*)\Z")


@dataclass(frozen=True)
class Query:
    """A documented query parameter."""

    name: str
    meaning: str
    schema: Mapping[str, Any] = field(default_factory=lambda: {"type": "string"})
    required: bool = False


@dataclass(frozen=True)
class Route:
    method: str
    path: str
    endpoint: Endpoint
    surface: Surface
    summary: str
    query: tuple[Query, ...] = ()
    body: Any = None
    body_type: str = "application/json"
    # Documented answers: status to (meaning, shape of the JSON body or None).
    answers: Mapping[int, tuple[str, Any]] = field(default_factory=dict)
    body_cap: int = MIB
    body_seconds: float = 30.0
    # A page's POST must carry its CSRF field; only an endpoint with a rule of its own says False.
    csrf: bool = True
    # The address may hold a secret, in its path or in where to go next: no other page is told of it.
    secret_address: bool = False
    # Its form may end at an app of another origin.
    leads_away: bool = False
    # Answers tokens that were requested for another server too (RFC 8707).
    any_audience: bool = False
    # Only for an address that no other row fits, whatever its fixed segments.
    otherwise: bool = False

    def __post_init__(self) -> None:
        # mypy says the same; a route that slipped past it must not be served.
        if not isinstance(self.endpoint, Endpoint):
            raise TypeError(f"{self.method} {self.path} takes an Endpoint: an action, a locator and a handler.")

    @property
    def action(self) -> Action:
        """What it needs; `endpoint.actions` has all of them where that depends on the request."""
        return self.endpoint.action

    @cached_property
    def manner(self) -> Manner:
        return Manner(self.surface, self.secret_address, self.leads_away)

    @cached_property
    def parameters(self) -> list[str]:
        """The names in its path, in order."""
        return [match.group(1) for part in self.path.split("/") if (match := PARAMETER.match(part))]
