"""JSON Schemas of webhook payloads, one for each kind of event, generated from the registry.

The schemas are open: a payload may gain members, and a validating receiver must not reject it for that.
"""

from collections.abc import Mapping
from typing import Any

from hubgate.server.events.kinds import Kind

DIALECT = "https://json-schema.org/draft/2020-12/schema"
VERSION = 3

Schema = dict[str, Any]


def _text(meaning: str, pattern: str = "") -> Schema:
    return {"type": "string", **({"pattern": pattern} if pattern else {}), "description": meaning}


def _id(meaning: str) -> Schema:
    return _text(meaning, "^[0-9a-f]{24}$")


def _sha(meaning: str) -> Schema:
    return _text(meaning, "^[0-9a-f]{40}$")


def _object(meaning: str, members: Mapping[str, Schema], optional: tuple[str, ...] = ()) -> Schema:
    return {
        "type": "object",
        "description": meaning,
        "properties": dict(members),
        "required": [name for name in members if name not in optional],
    }


_OWNER = _object("Whose it is.", {"id": _id("Of a user or an organization.")})
_REPO = _object(
    "The repo as it is right after the change; after a move, as it was before.",
    {
        "type": {"enum": ["model", "dataset", "space"], "description": "What it holds."},
        "name": _text("With its namespace.", "^[^/]+/[^/]+$"),
        "id": _id("Never changes, whatever the repo is called."),
        "private": {"type": "boolean", "description": "Whether only some may see it."},
        "url": _object("Where it is.", {"web": _text("Its page."), "api": _text("Its address in the API.")}),
        "owner": _OWNER,
        "headSha": _sha("Where main is; absent from an empty repo."),
        "head_sha": _sha("The same: receivers exist that look for either."),
        "tags": {"type": "array", "items": {"type": "string"}, "description": "From its README; absent without any."},
        "subdomain": _text("Of a space."),
    },
    optional=("headSha", "head_sha", "tags", "subdomain"),
)
_REF = _object(
    "One branch, tag or pull request.",
    {
        "ref": _text("In full, such as refs/heads/main.", "^refs/"),
        "oldSha": {**_sha("Where it was; null: it is new."), "type": ["string", "null"]},
        "newSha": {**_sha("Where it is; null: it is gone."), "type": ["string", "null"]},
    },
)

# Schemas of the extra members. A new extra in `kinds.py` needs a row here.
EXTRAS: Mapping[str, Schema] = {
    "movedTo": _object("Where the repo is now.", {"name": _text("With its namespace."), "owner": _OWNER}),
    "updatedRefs": {"type": "array", "items": _REF, "description": "What points elsewhere, in one change."},
    "updatedConfig": _object(
        "Settings that changed; empty for those that are not told.",
        {"private": {"type": "boolean", "description": "Whether only some may see the repo now."}},
        optional=("private",),
    ),
}


def members_of(kind: Kind) -> dict[str, Schema]:
    return {
        "event": _object(
            "What happened.",
            {
                "action": {"const": kind.action, "description": "What was done."},
                "scope": {"const": kind.scope, "description": "To which part of the repo."},
            },
        ),
        "repo": _REPO,
        **{name: EXTRAS[name] for name in kind.extras},
        "webhook": _object(
            "Which webhook sends it.",
            {"id": _id("As in its settings."), "version": {"const": VERSION, "description": "Of the payload."}},
        ),
        "truncated": {"const": True, "description": "Only if the payload was too large and some of it is left out."},
    }


def schema_of(kind: Kind, address: str) -> Schema:
    """The JSON Schema of a kind; `address` is the URL that serves it."""
    return {
        "$schema": DIALECT,
        "$id": address,
        "title": f"{kind.scope} {kind.action}",
        **_object(f"Sent when {kind.when}.", members_of(kind), optional=("truncated",)),
    }
