"""One row of the route table: an address, the endpoint behind it, and what is documented of it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from hubgate.server.access.actions import Action
from hubgate.server.edge.endpoint import Endpoint
from hubgate.server.http.headers import Manner
from hubgate.server.http.surface import Surface

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
