"""The OpenAPI document, generated from the route table alone, so that it cannot drift from the code."""

import re
from typing import Any

import msgspec

from hubgate import __version__
from hubgate.server.access.actions import Action
from hubgate.server.edge.routes import Route
from hubgate.server.edge.table import RouteTable
from hubgate.server.http.render import LfsResponse
from hubgate.server.http.surface import ErrorShape

_ERROR = {"type": "object", "required": ["error"], "properties": {"error": {"type": "string"}}}
_OAUTH_ERROR = {
    "type": "object",
    "required": ["error", "error_description"],
    "properties": {
        "error": {"type": "string"},
        "error_description": {"type": "string"},
        "error_uri": {"type": "string", "description": "The page where the app's owner sees the request."},
    },
}


def document(table: RouteTable, base_url: str) -> dict[str, Any]:
    # Pages are left out: the document is for programs.
    routes = [route for route in table.routes if route.surface.rules.errors is not ErrorShape.PAGE]
    shapes = _Shapes([shape for route in routes for shape in _shapes_of(route)])
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(_template(route.path), {})[route.method.lower()] = _operation(route, shapes)
    _require_unique([operation["operationId"] for path in paths.values() for operation in path.values()])
    _require_unique([re.sub(r"{\w+}", "{}", path) for path in paths])
    return {
        "openapi": "3.1.0",
        "info": {"title": "hubgate", "version": __version__},
        "servers": [{"url": base_url}],
        "paths": paths,
        "components": {
            "schemas": {**shapes.components, "Error": _ERROR, "OAuthError": _OAUTH_ERROR},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(route: Route, shapes: "_Shapes") -> dict[str, Any]:
    operation: dict[str, Any] = {
        "summary": route.summary,
        "operationId": _operation_id(route),
        "responses": {str(status): _answer(*answer, shapes) for status, answer in route.answers.items()},
    }
    operation["responses"]["default"] = _error_answer(route)
    parameters = [_path_parameter(name) for name in re.findall(r"{(\w+)(?::path)?}", route.path)]
    parameters += [
        {
            "name": query.name,
            "in": "query",
            "required": query.required,
            "description": query.meaning,
            "schema": query.schema,
        }
        for query in route.query
    ]
    if parameters:
        operation["parameters"] = parameters
    if route.body is not None:
        content = {route.body_type: {"schema": shapes.schema(route.body)}}
        operation["requestBody"] = {"required": True, "content": content}
    if route.action is not Action.HUB_PUBLIC:
        operation["security"] = [{"token": []}]
    return operation


def _answer(meaning: str, shape: Any, shapes: "_Shapes") -> dict[str, Any]:
    answer: dict[str, Any] = {"description": meaning}
    if shape is not None:
        answer["content"] = {"application/json": {"schema": shapes.schema(shape)}}
    return answer


def _error_answer(route: Route) -> dict[str, Any]:
    match route.surface.rules.errors:
        case ErrorShape.TEXT:
            content: dict[str, Any] = {"text/plain": {"schema": {"type": "string"}}}
        case ErrorShape.LFS:
            content = {LfsResponse.media_type: {"schema": {"$ref": "#/components/schemas/Error"}}}
        case ErrorShape.OAUTH:
            content = {"application/json": {"schema": {"$ref": "#/components/schemas/OAuthError"}}}
        case _:
            content = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    return {"description": "An error.", "content": content}


class _Shapes:
    """The schemas of all shapes, generated together, so that two shapes with the same name get distinct names."""

    def __init__(self, shapes: list[Any]) -> None:
        distinct = list({id(shape): shape for shape in shapes}.values())
        schemas, self.components = msgspec.json.schema_components(distinct, ref_template="#/components/schemas/{name}")
        self._schemas = {id(shape): schema for shape, schema in zip(distinct, schemas, strict=True)}
        if taken := self.components.keys() & {"Error", "OAuthError"}:
            raise ValueError(f"{taken} is reserved for the format of errors")
        for component in self.components.values():
            if "description" in component:
                # A docstring, with line breaks and, before Python 3.13, their indentation.
                component["description"] = " ".join(component["description"].split())

    def schema(self, shape: Any) -> dict[str, Any]:
        return self._schemas[id(shape)]


def _require_unique(names: list[str]) -> None:
    repeated = {name for name in names if names.count(name) > 1}
    if repeated:
        raise ValueError(f"OpenAPI requires these to be unique: {sorted(repeated)}")


def _shapes_of(route: Route) -> list[Any]:
    bodies = [route.body] if route.body is not None else []
    return bodies + [shape for _, shape in route.answers.values() if shape is not None]


def _path_parameter(name: str) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}


def _template(path: str) -> str:
    return path.replace(":path}", "}")


def _operation_id(route: Route) -> str:
    words = re.findall(r"\w+", re.sub(r"{(\w+)}", r"by_\1", _template(route.path)))
    return "_".join([route.method.lower(), *words])
