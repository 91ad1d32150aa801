"""The OpenAPI document, made from the route table and nothing else, so that it cannot drift from the code."""

import re
from typing import Any

import msgspec

from hubgate import __version__
from hubgate.server.http.routes import Route, RouteTable
from hubgate.server.http.surface import ErrorShape

_ERROR = {"type": "object", "required": ["error"], "properties": {"error": {"type": "string"}}}
_OAUTH_ERROR = {
    "type": "object",
    "required": ["error", "error_description"],
    "properties": {"error": {"type": "string"}, "error_description": {"type": "string"}},
}


def document(table: RouteTable, base_url: str) -> dict[str, Any]:
    # Pages are for people; the document lists what programs call.
    routes = [route for route in table.routes if route.surface.value.errors is not ErrorShape.PAGE]
    shapes = [shape for route in routes for shape in _shapes(route)]
    _, components = msgspec.json.schema_components(shapes, ref_template="#/components/schemas/{name}")
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(_template(route.path), {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {"title": "hubgate", "version": __version__},
        "servers": [{"url": base_url}],
        "paths": paths,
        "components": {
            "schemas": {**components, "Error": _ERROR, "OAuthError": _OAUTH_ERROR},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(route: Route) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "summary": route.summary,
        "operationId": _operation_id(route),
        "responses": {str(status): _answer(*answer) for status, answer in route.answers.items()},
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
        operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": _schema(route.body)}}}
    if route.action != "hub.public":
        operation["security"] = [{"token": []}]
    return operation


def _answer(meaning: str, shape: Any) -> dict[str, Any]:
    answer: dict[str, Any] = {"description": meaning}
    if shape is not None:
        answer["content"] = {"application/json": {"schema": _schema(shape)}}
    return answer


def _error_answer(route: Route) -> dict[str, Any]:
    match route.surface.value.errors:
        case ErrorShape.TEXT:
            content: dict[str, Any] = {"text/plain": {"schema": {"type": "string"}}}
        case ErrorShape.OAUTH:
            content = {"application/json": {"schema": {"$ref": "#/components/schemas/OAuthError"}}}
        case _:
            content = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    return {"description": "A refusal.", "content": content}


def _schema(shape: Any) -> dict[str, Any]:
    (schema,), _ = msgspec.json.schema_components([shape], ref_template="#/components/schemas/{name}")
    return schema


def _shapes(route: Route) -> list[Any]:
    bodies = [route.body] if route.body is not None else []
    return bodies + [shape for _, shape in route.answers.values() if shape is not None]


def _path_parameter(name: str) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}


def _template(path: str) -> str:
    return path.replace(":path}", "}")


def _operation_id(route: Route) -> str:
    words = re.findall(r"\w+", _template(route.path))
    return "_".join([route.method.lower(), *words])
