"""Parts of the JSON Schemas of webhook payloads.

The schemas are open: a payload may gain members, and a validating receiver must not reject it for that.
"""

from collections.abc import Mapping
from typing import Any

DIALECT = "https://json-schema.org/draft/2020-12/schema"
VERSION = 3

Schema = dict[str, Any]


def text(meaning: str, pattern: str = "") -> Schema:
    return {"type": "string", **({"pattern": pattern} if pattern else {}), "description": meaning}


def flag(meaning: str) -> Schema:
    return {"type": "boolean", "description": meaning}


def list_of(items: Schema, meaning: str) -> Schema:
    return {"type": "array", "items": items, "description": meaning}


def object_of(meaning: str, required: Mapping[str, Schema], optional: Mapping[str, Schema] | None = None) -> Schema:
    return {
        "type": "object",
        "description": meaning,
        "properties": {**required, **(optional or {})},
        "required": list(required),
    }


def _id(meaning: str) -> Schema:
    return text(meaning, "^[0-9a-f]{24}$")


def _sha(meaning: str) -> Schema:
    return text(meaning, "^[0-9a-f]{40}$")


OWNER = object_of("The owner of the repo.", {"id": _id("The id of a user or an organization.")})
REF = object_of(
    "A branch, tag or pull request.",
    {
        "ref": text("The full name, such as refs/heads/main.", "^refs/"),
        "oldSha": {**_sha("The commit before; null if the ref is new."), "type": ["string", "null"]},
        "newSha": {**_sha("The commit now; null if the ref was deleted."), "type": ["string", "null"]},
    },
)
REPO = object_of(
    "The repo right after the change; after a move, as it was before.",
    {
        "type": {"enum": ["model", "dataset", "space"], "description": "The type of the repo."},
        "name": text("The name with its namespace.", "^[^/]+/[^/]+$"),
        "id": _id("Never changes, even if the repo is renamed."),
        "private": flag("Whether the repo is private."),
        "url": object_of("The URLs of the repo.", {"web": text("Its page."), "api": text("Its URL in the API.")}),
        "owner": OWNER,
    },
    {
        "headSha": _sha("The commit of main; absent if the repo is empty."),
        "head_sha": _sha("The same as headSha: existing receivers use either name."),
        "tags": list_of({"type": "string"}, "The tags in README.md; absent if there are none."),
        "subdomain": text("The subdomain of a space."),
    },
)
DISCUSSION = object_of(
    "The discussion or pull request right after the change; if it was deleted, right before.",
    {
        "id": _id("The id."),
        "title": text("The title."),
        "url": object_of("The URLs.", {"web": text("Its page."), "api": text("Its URL in the API.")}),
        "status": {"enum": ["draft", "open", "closed", "merged"], "description": "The status."},
        "author": object_of("The user who opened it.", {"id": _id("The id of the user.")}),
        "num": {"type": "integer", "minimum": 1, "description": "The number in its repo."},
        "isPullRequest": flag("Whether it is a pull request."),
        "pinned": flag("Whether it is pinned."),
    },
    {
        "changes": object_of(
            "Only for pull requests.",
            {"base": text("The ref that the pull request is merged into.", "^refs/heads/")},
            {"mergeCommitId": _sha("The commit of the merge, once it is merged.")},
        )
    },
)
COMMENT = object_of(
    "The comment right after the change; for a new discussion, its description.",
    {
        "id": _id("The id."),
        "author": object_of("The user who wrote it.", {"id": _id("The id of the user.")}),
        "hidden": flag("Whether the comment is hidden."),
        "url": object_of("The URL.", {"web": text("Its place on the page.")}),
    },
    {"content": text("Markdown; absent if the comment is hidden.")},
)
WEBHOOK = object_of(
    "The webhook that sends the payload.",
    {"id": _id("The id in its settings."), "version": {"const": VERSION, "description": "The version of the payload."}},
)
TRUNCATED: Schema = {
    "const": True,
    "description": "Present if the payload was too large: refs are missing or a comment is cut.",
}
