"""The OpenAPI document, and a page that shows it: operations by subject, then the shapes of the JSON objects."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from msgspec import Struct, field
from starlette.responses import Response

from hubgate.server.edge.openapi import document
from hubgate.server.edge.routes import Route, public
from hubgate.server.edge.table import RouteTable
from hubgate.server.http.render import JsonResponse
from hubgate.server.http.request import HubRequest
from hubgate.server.http.surface import Surface
from hubgate.server.web.rendering import Pages

Document = Mapping[str, Any]

# Titles for paths whose first word says little to a reader; other subjects are titled by that word.
_TITLES = {
    "oauth": "Sign-in for apps",
    ".well-known": "Discovery",
    "healthz": "Health",
    "readyz": "Health",
    "models": "Models, datasets and spaces",
    "metrics": "Health",
    "openapi.json": "Documentation",
    "agent-harnesses": "Client compatibility",
    "telemetry": "Client compatibility",
}
# Subjects that few readers look for are listed last.
_LAST = ("Documentation", "Client compatibility", "Health")
_DEFAULT_STATUS = "other"
# Operations on datasets and spaces that also exist for models are listed once.
_OF_MODELS = "/api/models"
_OF_OTHER_TYPES = re.compile(r"/api/(?:datasets|spaces)(?=/|$)")
_NOTES = {"Models, datasets and spaces": "The operations on models exist under /api/datasets and /api/spaces too."}


class Piece(Struct, frozen=True):
    """A piece of the text that describes a type; `shape` is the anchor that it links to, if any."""

    text: str
    shape: str = ""


TypeText = tuple[Piece, ...]


class Field(Struct, frozen=True):
    name: str
    kind: TypeText
    required: bool
    place: str = ""
    meaning: str = ""


class ApiResponse(Struct, frozen=True):
    status: str
    meaning: str
    kind: TypeText


class Operation(Struct, frozen=True):
    anchor: str
    method: str
    path: str
    summary: str
    needs_token: bool
    parameters: tuple[Field, ...]
    body: TypeText
    answers: tuple[ApiResponse, ...]


class ApiSubject(Struct, frozen=True):
    anchor: str
    title: str
    note: str = ""
    operations: list[Operation] = field(default_factory=list)


class Shape(Struct, frozen=True):
    anchor: str
    name: str
    kind: TypeText
    fields: tuple[Field, ...]


def routes(pages: Pages, base_url: str, documented: Sequence[Route]) -> list[Route]:
    async def openapi(_: HubRequest) -> JsonResponse:
        return JsonResponse(openapi_document(), headers={"cache-control": "public, max-age=300"})

    async def page(request: HubRequest) -> Response:
        return pages.page(request, "apidocs.html", **page_values())

    own = [
        Route(
            "GET",
            "/api/openapi.json",
            public(openapi),
            Surface.API,
            "The OpenAPI document",
            answers={200: ("OpenAPI 3.1.", dict)},
        ),
        Route("GET", "/docs/api", public(page), Surface.PAGE, "API reference"),
    ]

    # Created on first request: creating it takes longer than the rest of the start-up.
    @cache
    def openapi_document() -> dict[str, Any]:
        return document(RouteTable([*documented, *own]), base_url)

    @cache
    def page_values() -> dict[str, Any]:
        found = subjects(openapi_document())
        return {
            "subjects": found,
            "shapes": shapes(openapi_document()),
            "contents": [*((f"#{subject.anchor}", subject.title) for subject in found), ("#shapes", "Schemas")],
            "tokens": any(operation.needs_token for subject in found for operation in subject.operations),
        }

    return own


def subjects(document: Document) -> list[ApiSubject]:
    """Subjects in the order of the document; those in `_LAST` come last."""
    found: dict[str, ApiSubject] = {}
    for path, methods in document["paths"].items():
        if is_listed_with_models(path, document):
            continue
        title = _title(path)
        subject = found.setdefault(title, ApiSubject(f"about-{_slug(title)}", title, _NOTES.get(title, "")))
        subject.operations.extend(_operation(method, path, described) for method, described in methods.items())
    return sorted(found.values(), key=lambda subject: _LAST.index(subject.title) + 1 if subject.title in _LAST else 0)


def is_listed_with_models(path: str, document: Document) -> bool:
    of_models = _OF_OTHER_TYPES.sub(_OF_MODELS, path, 1)
    paths = document["paths"]
    return of_models != path and of_models in paths and paths[of_models].keys() >= paths[path].keys()


def shapes(document: Document) -> list[Shape]:
    schemas = document["components"]["schemas"]
    return [
        Shape(_shape_anchor(name), name, _kind(schema), tuple(_properties(schema)))
        for name, schema in sorted(schemas.items())
    ]


def _title(path: str) -> str:
    words = [word for word in path.split("/") if word and not word.startswith("{")]
    # Under /api the second word is the subject; in /api/settings/webhooks, the third.
    for prefix in ("api", "settings"):
        if words[0] == prefix and len(words) > 1:
            words = words[1:]
    return _TITLES.get(words[0], words[0].replace("-", " ").capitalize())


def _operation(method: str, path: str, described: Document) -> Operation:
    return Operation(
        anchor=described["operationId"],
        method=method.upper(),
        path=path,
        summary=described["summary"],
        needs_token="security" in described,
        parameters=tuple(_parameter(parameter) for parameter in described.get("parameters", ())),
        body=_content(described.get("requestBody", {})),
        answers=tuple(
            ApiResponse(_DEFAULT_STATUS if status == "default" else status, answer["description"], _content(answer))
            for status, answer in described["responses"].items()
        ),
    )


def _parameter(parameter: Document) -> Field:
    name, kind, description = parameter["name"], _kind(parameter["schema"]), parameter.get("description", "")
    return Field(name, kind, parameter["required"], parameter["in"], description)


def _properties(schema: Document) -> Iterable[Field]:
    required = schema.get("required", ())
    for name, described in schema.get("properties", {}).items():
        yield Field(name, _kind(described), name in required, meaning=described.get("description", ""))


def _content(message: Document) -> TypeText:
    """The shape of a request or response body; empty if there is no body."""
    for media_type, content in message.get("content", {}).items():
        match media_type:
            case "application/json":
                return _kind(content["schema"])
            case "application/x-www-form-urlencoded":
                return (*_kind(content["schema"]), Piece(f", as {media_type}"))
        return (Piece(media_type),)
    return ()


def _kind(schema: Document) -> TypeText:
    match schema:
        case {"$ref": str(reference)}:
            name = reference.rpartition("/")[2]
            return (Piece(name, _shape_anchor(name)),)
        case {"anyOf": list(options)} | {"oneOf": list(options)}:
            return _either([_kind(option) for option in options])
        case {"enum": list(values)}:
            return _either([(Piece(json.dumps(value)),) for value in values])
        case {"const": value}:
            return (Piece(json.dumps(value)),)
        case {"type": list(names)}:
            return _either([(Piece(name),) for name in names])
        case {"type": "array", "items": dict(items)}:
            return (Piece("list of "), *_kind(items))
        case {"type": "object", "additionalProperties": dict(values)}:
            return (Piece("object of "), *_kind(values))
        case {"type": "array"}:
            return (Piece("list"),)
        case {"type": str(name)}:
            return (Piece(name),)
    return (Piece("any value"),)


def _either(options: list[TypeText]) -> TypeText:
    joined: list[Piece] = []
    for option in options:
        joined += [Piece(" or "), *option] if joined else option
    return tuple(joined)


def _shape_anchor(name: str) -> str:
    return f"shape-{_slug(name)}"


def _slug(text: str) -> str:
    return re.sub(r"\W+", "-", text).strip("-").lower()
