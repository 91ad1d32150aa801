"""The route table: every address of the hub as one row, from which dispatch, OpenAPI and the access matrix follow.

Matching works on the raw path, segment by segment, before percent-decoding: existing clients send `refs%2Fpr%2F1` as
one segment and file names with `%3F` in them. A fixed segment wins over a parameter; `{name:path}` takes the rest.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from starlette.types import ASGIApp

from hubgate.server.errors import BadRequest, MethodNotAllowed, NotFound
from hubgate.server.http.request import HubRequest
from hubgate.server.http.surface import Surface

# Every Starlette response is itself an ASGI application.
Handler = Callable[[HubRequest], Awaitable[ASGIApp]]

KIB = 1024
MIB = 1024 * KIB


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
    handler: Handler
    surface: Surface
    # Which question of access/policy.py guards it; the access matrix demands a row for each route.
    action: str
    summary: str
    query: tuple[Query, ...] = ()
    body: Any = None
    # Documented answers: status to (meaning, shape of the JSON body or None).
    answers: Mapping[int, tuple[str, Any]] = field(default_factory=dict)
    body_cap: int = MIB
    body_seconds: float = 30.0
    # A page's POST must carry its CSRF field; only an endpoint with a rule of its own says False.
    csrf: bool = True


@dataclass(frozen=True)
class Match:
    route: Route
    params: dict[str, str]


class _Node:
    __slots__ = ("fixed", "param", "rest", "routes")

    def __init__(self) -> None:
        self.fixed: dict[str, _Node] = {}
        self.param: _Node | None = None
        self.rest: _Node | None = None
        self.routes: dict[str, Route] = {}


class RouteTable:
    def __init__(self, routes: Iterable[Route]) -> None:
        self.routes = tuple(routes)
        self._root = _Node()
        for route in self.routes:
            node = self._node_for(route.path)
            if route.method in node.routes:
                raise ValueError(f"{route.method} {route.path} is in the table twice")
            node.routes[route.method] = route

    def match(self, method: str, raw_path: bytes) -> Match:
        node, parts = self._find(raw_path)
        route = node.routes.get(method)
        if route is None and method == "HEAD":
            route = node.routes.get("GET")
        if route is None:
            raise MethodNotAllowed(self._methods(node))
        return Match(route, dict(zip(_names(route.path), parts, strict=True)))

    def cors_methods(self, raw_path: bytes) -> list[str]:
        """What a browser app of another origin may call at this address."""
        node, _ = self._find(raw_path)
        return sorted(method for method, route in node.routes.items() if route.surface.value.cors)

    def _find(self, raw_path: bytes) -> tuple[_Node, list[str]]:
        try:
            segments = raw_path.decode("ascii").split("/")[1:]
        except UnicodeDecodeError:
            raise BadRequest("Percent-encode the address.") from None
        found = _walk(self._root, segments, 0)
        if found is None:
            raise NotFound("Nothing here, or not for you. Another account may see more.")
        node, raw_parts = found
        return node, [_decoded(part) for part in raw_parts]

    def _node_for(self, path: str) -> _Node:
        node = self._root
        for segment in path.split("/")[1:]:
            if segment.endswith(":path}"):
                node.rest = node.rest or _Node()
                node = node.rest
            elif segment.startswith("{"):
                node.param = node.param or _Node()
                node = node.param
            else:
                node = node.fixed.setdefault(segment, _Node())
        return node

    @staticmethod
    def _methods(node: _Node) -> set[str]:
        return set(node.routes) | ({"HEAD"} if "GET" in node.routes else set())


def _walk(node: _Node, segments: list[str], at: int) -> tuple[_Node, list[str]] | None:
    if at == len(segments):
        return (node, []) if node.routes else None
    segment = segments[at]
    if (child := node.fixed.get(segment)) and (found := _walk(child, segments, at + 1)):
        return found
    if segment and node.param and (found := _walk(node.param, segments, at + 1)):
        return found[0], [segment, *found[1]]
    if node.rest and node.rest.routes:
        return node.rest, ["/".join(segments[at:])]
    return None


def _names(path: str) -> list[str]:
    return [part[1:-1].removesuffix(":path") for part in path.split("/") if part.startswith("{")]


def _decoded(part: str) -> str:
    try:
        text = unquote(part, errors="strict")
    except UnicodeDecodeError:
        raise BadRequest("The address is not valid UTF-8.") from None
    if "\0" in text:
        raise BadRequest("The address holds a NUL byte.")
    return text
