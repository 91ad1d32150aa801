"""The route table: all routes of the hub, used for dispatch, OpenAPI and the access tests.

Matching works on the raw path, segment by segment, before percent-decoding: existing clients send `refs%2Fpr%2F1` as
one segment and file names with `%3F` in them. Among routes with the method, a fixed segment takes precedence over a
parameter; `{name}.git` matches a segment by its suffix, `{name:path}` the rest. Fallback routes are tried last.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Literal, NamedTuple
from urllib.parse import unquote

from hubgate.server.edge.routes import PARAMETER, Route
from hubgate.server.errors import BadRequest, MethodNotAllowed


class RouteMatch(NamedTuple):
    """The routes of a path. If none has the method, `match` is None and `route` raises MethodNotAllowed."""

    match: Route | None
    by_method: Mapping[str, Route]
    raw_params: list[str]

    @classmethod
    def for_method(cls, method: str, by_method: Mapping[str, Route], raw_params: list[str]) -> "RouteMatch":
        match = by_method.get(method) or (by_method.get("GET") if method == "HEAD" else None)
        return cls(match, by_method, raw_params)

    @property
    def routes(self) -> list[Route]:
        return list(self.by_method.values())

    @property
    def methods(self) -> list[str]:
        return sorted({*self.by_method, *(["HEAD"] if "GET" in self.by_method else [])})

    @property
    def route(self) -> Route:
        if self.match is None:
            raise MethodNotAllowed(self.methods)
        return self.match

    @property
    def nearest(self) -> Route:
        """The matched route, or another route of the path, whose surface also applies to a rejected method."""
        return self.match or self.routes[0]

    @property
    def params(self) -> dict[str, str]:
        if not self.raw_params:
            return {}
        return dict(zip(self.route.parameters, map(_decoded, self.raw_params), strict=True))


class _Node:
    __slots__ = ("fixed", "place", "rest", "suffixes")

    def __init__(self) -> None:
        self.fixed: dict[str, _Node] = {}
        # By the suffix that follows the parameter in its segment; "" for a plain parameter.
        self.suffixes: dict[str, _Node] = {}
        self.rest: _Node | None = None
        # The number of the path that ends here.
        self.place: int | None = None


class _Tree(NamedTuple):
    """The paths of a table, without its routes: all tables with the same paths share it."""

    root: _Node
    fallback: _Node
    # For each path, in the order given, its number. Paths that match alike have the same number.
    places: tuple[int, ...]


class RouteTable:
    def __init__(self, routes: Iterable[Route]) -> None:
        self.routes = tuple(routes)
        self._tree = _tree_of(tuple((route.path, route.is_fallback) for route in self.routes))
        # By the number of the path.
        self._by_method: dict[int, dict[str, Route]] = {place: {} for place in self._tree.places}
        # Routes without parameters by path and method, as the walk would find them.
        self._fixed: dict[tuple[bytes, str], RouteMatch] = {}
        for route, place in zip(self.routes, self._tree.places, strict=True):
            by_method = self._by_method[place]
            if route.method in by_method:
                raise ValueError(f"{route.method} {route.path} is in the table twice")
            by_method[route.method] = route
        for route, place in zip(self.routes, self._tree.places, strict=True):
            if "{" not in route.path:
                methods = (route.method, "HEAD") if route.method == "GET" else (route.method,)
                at, by_method = route.path.encode(), self._by_method[place]
                self._fixed |= {(at, method): RouteMatch.for_method(method, by_method, []) for method in methods}

    def find(self, method: str, raw_path: bytes) -> RouteMatch | None:
        if fixed := self._fixed.get((raw_path, method)):
            return fixed
        try:
            segments = raw_path.decode("ascii").split("/")[1:]
        except UnicodeDecodeError:
            raise BadRequest("Percent-encode the address.") from None
        return self._find(self._tree.root, method, segments) or self._find(self._tree.fallback, method, segments)

    def _find(self, root: _Node, method: str, segments: list[str]) -> RouteMatch | None:
        """The first matching path that has the method, otherwise the first matching path."""
        first: RouteMatch | None = None
        for place, params in _walk(root, segments, 0):
            found = RouteMatch.for_method(method, self._by_method[place], params)
            if found.match:
                return found
            first = first or found
        return first


@lru_cache(maxsize=4)
def _tree_of(paths: tuple[tuple[str, bool], ...]) -> _Tree:
    """Build the tree of these paths, each with whether it is a fallback."""
    root, fallback, places = _Node(), _Node(), list[int]()
    for number, (path, is_fallback) in enumerate(paths):
        node = fallback if is_fallback else root
        for kind, name in _steps(path):
            if kind == "fixed":
                node = _child(node.fixed, name)
            elif kind == "suffix":
                node = _child(node.suffixes, name)
            else:
                node.rest = node.rest or _Node()
                node = node.rest
        if node.place is None:
            node.place = number
        places.append(node.place)
    return _Tree(root, fallback, tuple(places))


def _steps(path: str) -> tuple[tuple[Literal["fixed", "suffix", "rest"], str], ...]:
    """What each segment of a route's path matches, with its text or the suffix after its parameter."""
    segments, steps = path.split("/")[1:], list[tuple[Literal["fixed", "suffix", "rest"], str]]()
    for position, segment in enumerate(segments, 1):
        if "{" not in segment and "}" not in segment:
            steps.append(("fixed", segment))
            continue
        parameter = PARAMETER.match(segment)
        if parameter is None:
            raise ValueError(f"{path}: {segment} is neither fixed nor one parameter")
        if not parameter.group(2):
            steps.append(("suffix", parameter.group(3)))
            continue
        if position < len(segments) or parameter.group(3):
            raise ValueError(f"{path}: {segment} matches the rest of the path, so nothing may follow")
        steps.append(("rest", ""))
    return tuple(steps)


def _child(children: dict[str, _Node], name: str) -> _Node:
    found = children.get(name)
    if found is None:
        found = children[name] = _Node()
    return found


def _walk(node: _Node, segments: list[str], at: int) -> Iterator[tuple[int, list[str]]]:
    """The numbers of all paths that match, most specific first, each with its raw parameters."""
    if at == len(segments):
        if node.place is not None:
            yield node.place, []
        return
    segment = segments[at]
    if child := node.fixed.get(segment):
        is_known = False
        for match in _walk(child, segments, at + 1):
            is_known = True
            yield match
        if is_known and at == 0:
            # The name is reserved (accounts/names.py), so it is not a namespace: GET /oauth/token is 405.
            return
    for suffix, child in sorted(node.suffixes.items(), key=lambda item: -len(item[0])):
        value = segment.removesuffix(suffix) if suffix else segment
        if value and segment.endswith(suffix):
            for found, params in _walk(child, segments, at + 1):
                yield found, [value, *params]
    if node.rest and node.rest.place is not None:
        yield node.rest.place, ["/".join(segments[at:])]


def _decoded(part: str) -> str:
    try:
        text = unquote(part, errors="strict")
    except UnicodeDecodeError:
        raise BadRequest("The address is not valid UTF-8.") from None
    if "\0" in text:
        raise BadRequest("The address contains a NUL byte.")
    return text
