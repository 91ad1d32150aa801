"""An example request and response for each operation, generated from its schemas. Values are chosen by the names of
fields and parameters, and a test validates every example against its schema.
"""

import json
import re
import shlex
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

from msgspec import Struct

Document = Mapping[str, Any]

_ID = "68d00a00c2f7b1a09d3e5f12"
_COMMIT = "5d4140b6a2c89f3e17d0c4b8a9e6f1023d7c5a84"
_SHA256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
_TIME = "2026-11-18T09:30:00.000Z"
_DEEPEST = 5
# Optional fields of a request are shown only if no field is required; a response shows all.
_OPTIONAL_SHOWN = 2
# By the name of a string field or parameter.
_STRINGS = {
    "action": "update",
    "algo": "sha256",
    "authorId": _ID,
    "branch": "main",
    "client_id": _ID,
    "clientId": _ID,
    "commitOid": _COMMIT,
    "compare": "main..v1.0",
    "content": "Looks good to me.",
    "email": "ada@example.org",
    "fullname": "Ada Lovelace",
    "grant_type": "authorization_code",
    "host": "ci.acme.dev",
    "kind": "repo.content.update",
    "license": "mit",
    "message": "First results",
    "name": "tiny",
    "namespace": "acme",
    "newName": "small",
    "oid": _SHA256,
    "organization": "acme",
    "owner": "acme",
    "path": "config.json",
    "ref": "refs/heads/main",
    "repo": "tiny",
    "repoId": "acme/tiny",
    "rev": "main",
    "revision": "main",
    "scope": "read-repos",
    "search": "tiny",
    "secret": "s3cret-of-the-receiver",
    "sha": _COMMIT,
    "status": "open",
    "subject": "ada@example.org",
    "summary": "First results",
    "tag": "v1.0",
    "title": "First results",
    "token": "hf_…",
    "type": "model",
    "url": "https://ci.acme.dev/hooks",
    "user": "ada",
    "username": "ada",
    "visibility": "private",
}
_INTEGERS = {"size": 1290, "num": 1, "status": 200, "limit": 20, "port": 7860}


class Example(Struct, frozen=True):
    """A command that sends the request, and the body of the response; empty if that is not JSON."""

    request: str
    response: str


def example(method: str, path: str, described: Document, document: Document) -> Example:
    return Example(
        _request(method, path, described, document),
        next(
            (
                json.dumps(value_of(content["schema"], document), indent=2, ensure_ascii=False)
                for status, answer in described["responses"].items()
                if status.startswith("2")
                for content in answer.get("content", {}).values()
            ),
            "",
        ),
    )


def _request(method: str, path: str, described: Document, document: Document) -> str:
    parameters = described.get("parameters", ())
    filled = re.sub(r"{(\w+)}", lambda match: quote(_string(match[1]), safe="/"), path)
    query = {
        parameter["name"]: _plain(value_of(parameter["schema"], document, parameter["name"]))
        for parameter in parameters
        if parameter["in"] == "query" and parameter["required"]
    }
    address = f"{document['servers'][0]['url']}{filled}{'?' + urlencode(query) if query else ''}"
    verb = {"get": "", "post": " -X POST"}.get(method, f" -X {method.upper()}")
    parts = [f'curl{verb} "{address}"']
    if "security" in described:
        parts.append('-H "Authorization: Bearer $TOKEN"')
    for media_type, content in described.get("requestBody", {}).get("content", {}).items():
        body = value_of(content["schema"], document, is_request=True)
        if media_type == "application/x-www-form-urlencoded":
            parts += [f"-d {shlex.quote(f'{name}={_plain(value)}')}" for name, value in body.items()]
        else:
            parts += [f'-H "Content-Type: {media_type}"', f"-d {shlex.quote(json.dumps(body, ensure_ascii=False))}"]
        # curl sends a POST by itself if there is a body.
        parts[0] = parts[0].replace(" -X POST", "")
    return " \\\n  ".join(parts)


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def value_of(schema: Document, document: Document, name: str = "", depth: int = 0, *, is_request: bool = False) -> Any:
    """A value that the schema accepts. `name` is the field's name, which says what a string means."""
    match schema:
        case {"$ref": str(reference)}:
            shape = document["components"]["schemas"][reference.rpartition("/")[2]]
            return value_of(shape, document, name, depth, is_request=is_request)
        case {"const": value}:
            return value
        case {"enum": [first, *_]}:
            return first
        case {"anyOf": list(options)} | {"oneOf": list(options)}:
            some = next((option for option in options if option.get("type") != "null"), options[0])
            return value_of(some, document, name, depth, is_request=is_request)
        case {"type": list(types)}:
            some = next((one for one in types if one != "null"), "null")
            return value_of({**schema, "type": some}, document, name, depth, is_request=is_request)
        case {"type": "object"}:
            return _object(schema, document, depth, is_request=is_request)
        case {"type": "array"}:
            items = schema.get("items", {})
            wanted = schema.get("minItems", 0) or int(depth < _DEEPEST and bool(items))
            singular = name.removesuffix("s")
            return [value_of(items, document, singular, depth + 1, is_request=is_request) for _ in range(wanted)]
        case {"type": "boolean"}:
            return bool(schema.get("default", True))
        case {"type": "integer" | "number"}:
            lowest = schema.get("minimum", schema.get("exclusiveMinimum", -1) + 1)
            return max(_INTEGERS.get(name, 3), lowest) if "maximum" not in schema else max(lowest, 1)
        case {"type": "null"}:
            return None
        case {"type": "string"}:
            return _string(name)[: schema.get("maxLength")]
    return schema.get("default")


def _object(schema: Document, document: Document, depth: int, *, is_request: bool) -> dict[str, Any]:
    required, properties = schema.get("required", ()), schema.get("properties", {})
    shown = [name for name in properties if not is_request or name in required] or list(properties)[:_OPTIONAL_SHOWN]
    if depth >= _DEEPEST:
        shown = list(required)
    found = {name: value_of(properties[name], document, name, depth + 1, is_request=is_request) for name in shown}
    extra = schema.get("additionalProperties")
    if not properties and isinstance(extra, dict):
        found["config.json"] = value_of(extra, document, "", depth + 1, is_request=is_request)
    return found


def _string(name: str) -> str:
    """A value for a string by the name of its field; the last word decides for longer names."""
    if name in _STRINGS:
        return _STRINGS[name]
    lower = name.lower()
    if re.search(r"(at|date|until|modified|expires)$", lower) and lower not in ("format", "flat"):
        return _TIME
    if re.search(r"(uri|url|endpoint|link|issuer|website)s?$", lower):
        return "https://ci.acme.dev/hooks"
    if lower.endswith(("hash", "sha256", "digest", "etag")):
        return _SHA256
    if lower.endswith(("sha", "commit", "oid")):
        return _COMMIT
    if lower.endswith("id"):
        return _ID
    if lower.endswith("name"):
        return "tiny"
    return "…"
