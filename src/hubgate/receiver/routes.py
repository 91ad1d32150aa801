"""Routes a delivery to its handler, by address and then by kind of event and type of repo."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from hubgate.receiver.handlers import Handler, Plan, plan_for
from hubgate.receiver.payload import WebhookPayload

PREFIX = "/webhooks/"
# The address that handlers registered by kind share.
EVENTS = PREFIX + "events"
EVERYTHING = "*"
TYPES = ("model", "dataset", "space")
# Limits the work for a scope with millions of dots.
MAX_PARTS = 8


@dataclass
class Endpoint:
    """An address, with either one handler for all deliveries, or several by kind and type."""

    path: str
    catch_all: Plan | None = None
    by_kind: dict[tuple[str, str | None], Plan] = field(default_factory=dict)

    @property
    def needs_payload(self) -> bool:
        """Whether the body must be a payload. Routing by kind always needs it."""
        return self.catch_all is None or self.catch_all.needs_payload

    def plan_for(self, payload: WebhookPayload | None) -> Plan | None:
        """The most specific matching handler: first by kind, then by type."""
        if self.catch_all is not None or payload is None:
            return self.catch_all
        for kind in kinds_of(payload):
            for repo_type in (payload.repo.type, None):
                if found := self.by_kind.get((kind, repo_type)):
                    return found
        return None


def kinds_of(payload: WebhookPayload) -> Iterator[str]:
    """Yield the kinds to look up, such as `repo.content.update`, `repo.content`, `repo`, `*`: most specific first."""
    parts = payload.kind.split(".", MAX_PARTS)[:MAX_PARTS]
    for length in range(len(parts), 0, -1):
        yield ".".join(parts[:length])
    yield EVERYTHING


def check_kind(kind: object, repo_type: object) -> None:
    """Raise ValueError for a kind or type that no delivery can have: its handler would never be called.

    Unknown kinds are accepted, because a newer hub may send them.
    """
    if not isinstance(kind, str) or not kind.strip():
        raise ValueError(f'kind must be a string such as "repo.content", or "*", not {kind!r}.')
    if repo_type is not None and repo_type not in TYPES:
        raise ValueError(f"type must be one of {', '.join(TYPES)}, not {repo_type!r}.")


class Routes:
    def __init__(self) -> None:
        self.endpoints: dict[str, Endpoint] = {}

    def add(self, handler: Handler, path: str | None) -> str:
        """Register a handler and return its address. Raises ValueError if the address is taken or invalid."""
        name = (path if path is not None else getattr(handler, "__name__", "")).strip("/")
        if not name or name != name.strip() or any(mark in name for mark in "?#\\"):
            raise ValueError(f"A webhook cannot have the name {name!r}.")
        if PREFIX + name in self.endpoints:
            raise ValueError(f"{PREFIX}{name} is already registered.")
        self.endpoints[PREFIX + name] = Endpoint(PREFIX + name, plan_for(handler))
        return PREFIX + name

    def on(self, handler: Handler, kind: str, repo_type: str | None) -> None:
        endpoint = self.endpoints.setdefault(EVENTS, Endpoint(EVENTS))
        if endpoint.catch_all is not None:
            raise ValueError(f"{EVENTS} is already registered with add_webhook. Use another path there.")
        if (kind, repo_type) in endpoint.by_kind:
            raise ValueError(f"{kind} ({repo_type or 'any type'}) is already registered.")
        endpoint.by_kind[kind, repo_type] = plan_for(handler)
