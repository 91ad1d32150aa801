"""Operations and the shapes of JSON objects, read from the OpenAPI document, with types described in words."""

import json
import re
from collections.abc import Iterable, Iterator

from msgspec import Struct

from hubgate.server.web.pages.api_reference.examples import Document, Example, example

_DEFAULT_STATUS = "other"


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
    example: Example


class Shape(Struct, frozen=True):
    anchor: str
    name: str
    kind: TypeText
    fields: tuple[Field, ...]


def shapes(document: Document) -> list[Shape]:
    """All shapes of the document, by name."""
    schemas = document["components"]["schemas"]
    return [
        Shape(_shape_anchor(name), name, _kind(schema), tuple(_properties(schema)))
        for name, schema in sorted(schemas.items())
    ]


def shapes_used_by(operations: Iterable[Operation], known: Iterable[Shape]) -> list[Shape]:
    """The shapes that the operations link to, and those that these shapes link to in turn, by name."""
    by_anchor = {shape.anchor: shape for shape in known}
    waiting = {anchor for operation in operations for anchor in _links_of_operation(operation)}
    used: dict[str, Shape] = {}
    while waiting:
        shape = by_anchor[waiting.pop()]
        used[shape.anchor] = shape
        waiting |= set(_links(shape.kind, *(field.kind for field in shape.fields))) - used.keys()
    return sorted(used.values(), key=lambda shape: shape.name)


def _links_of_operation(operation: Operation) -> Iterator[str]:
    parameters = (parameter.kind for parameter in operation.parameters)
    return _links(operation.body, *parameters, *(answer.kind for answer in operation.answers))


def _links(*kinds: TypeText) -> Iterator[str]:
    return (piece.shape for kind in kinds for piece in kind if piece.shape)


def operation(method: str, path: str, described: Document, document: Document) -> Operation:
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
        example=example(method, path, described, document),
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
