"""Sample payloads of every kind of event, as the hub sends them."""

import copy
from typing import Any

_OID = {letter: letter * 40 for letter in "abc"}
_ID = {number: f"{number:024x}" for number in range(1, 8)}

_URL_PREFIX = {"model": "", "dataset": "datasets/", "space": "spaces/"}

_COMMENT = {
    "id": _ID[4],
    "author": {"id": _ID[2]},
    "content": "Is this trained on the newest data?",
    "hidden": False,
    "url": {"web": ""},
}

# The members other than event, repo, discussion and webhook.
_EXTRA_MEMBERS: dict[str, dict[str, Any]] = {
    "repo.create": {},
    "repo.delete": {},
    "repo.update": {},
    "repo.move": {"movedTo": {"name": "acme/small", "owner": {"id": _ID[3]}}},
    "repo.content.update": {
        "updatedRefs": [{"ref": "refs/heads/main", "oldSha": _OID["b"], "newSha": _OID["a"]}],
    },
    "repo.config.update": {"updatedConfig": {"private": True}},
    "discussion.create": {"comment": _COMMENT},
    "discussion.update": {},
    "discussion.delete": {},
    "discussion.comment.create": {"comment": _COMMENT},
    "discussion.comment.update": {"comment": {**_COMMENT, "content": "Which data is this trained on?"}},
}

KINDS = tuple(_EXTRA_MEMBERS)


def sample(kind: str, *, type: str = "model", name: str = "ada/tiny", **more: Any) -> dict[str, Any]:  # noqa: A002
    """A sample payload. `kind` is one of KINDS, otherwise ValueError is raised. `more` replaces or adds members."""
    if kind not in _EXTRA_MEMBERS:
        raise ValueError(f"Unknown kind {kind!r}. Known kinds: {', '.join(KINDS)}.")
    scope, _, action = kind.rpartition(".")
    web = f"https://hub.example/{_URL_PREFIX.get(type, f'{type}s/')}{name}"
    payload: dict[str, Any] = {
        "event": {"action": action, "scope": scope},
        "repo": _repo(type, name, web, with_head=scope.startswith("repo")),
        **({"discussion": _discussion(web, type, name)} if scope.startswith("discussion") else {}),
        **copy.deepcopy(_EXTRA_MEMBERS[kind]),
        "webhook": {"id": _ID[7], "version": 3},
    }
    if "comment" in payload:
        payload["comment"]["url"]["web"] = f"{payload['discussion']['url']['web']}#{_ID[4]}"
    if kind == "repo.config.update":
        payload["repo"]["private"] = True
    return {**payload, **more}


def _repo(repo_type: str, name: str, web: str, *, with_head: bool) -> dict[str, Any]:
    head = {"headSha": _OID["a"], "head_sha": _OID["a"]} if with_head else {}
    return {
        "type": repo_type,
        "name": name,
        "id": _ID[1],
        "private": False,
        "url": {"web": web, "api": f"https://hub.example/api/{repo_type}s/{name}"},
        "owner": {"id": _ID[2]},
        **head,
        "tags": ["license:mit"],
    }


def _discussion(web: str, repo_type: str, name: str) -> dict[str, Any]:
    api = f"https://hub.example/api/{repo_type}s/{name}/discussions/1"
    return {
        "id": _ID[5],
        "title": "About the data",
        "url": {"web": f"{web}/discussions/1", "api": api},
        "status": "open",
        "author": {"id": _ID[2]},
        "num": 1,
        "isPullRequest": False,
        "pinned": False,
    }
