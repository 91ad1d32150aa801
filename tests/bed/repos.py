"""Repos for a test, made over HTTP."""

import base64
import hashlib
import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

import httpx


def make_repo(client: httpx.Client, name: str, repo_type: str = "model", **more: Any) -> dict[str, Any]:
    """`name` may have a namespace. What the hub answered."""
    namespace, _, own = name.rpartition("/")
    asked = {"name": own, "organization": namespace or None, "type": repo_type, **more}
    if repo_type == "space":
        asked.setdefault("sdk", "static")
    answer = client.post("/api/repos/create", json=asked)
    assert answer.status_code == 200, answer.text
    made: dict[str, Any] = answer.json()
    return made


def commit(
    client: httpx.Client,
    repo: str,
    files: dict[str, bytes],
    *,
    repo_type: str = "model",
    rev: str = "main",
    summary: str = "A change",
    parent: str | None = None,
    delete: Sequence[str] = (),
    query: str = "",
) -> httpx.Response:
    """Files sent inside the commit."""
    lines: list[dict[str, Any]] = [{"key": "header", "value": {"summary": summary, "parentCommit": parent}}]
    for path, content in files.items():
        text = base64.b64encode(content).decode()
        lines.append({"key": "file", "value": {"content": text, "path": path, "encoding": "base64"}})
    lines += [{"key": "deletedEntry", "value": {"path": path}} for path in delete]
    body = "\n".join(map(json.dumps, lines)).encode()
    address = f"/api/{repo_type}s/{repo}/commit/{quote(rev, safe='')}{query}"
    return client.post(address, content=body, headers={"content-type": "application/x-ndjson"})


def committed(client: httpx.Client, repo: str, files: dict[str, bytes], **more: Any) -> str:
    """The new commit's id."""
    answer = commit(client, repo, files, **more)
    assert answer.status_code == 200, answer.text
    sha: str = answer.json()["commitOid"]
    return sha


def send_large(client: httpx.Client, repo: str, content: bytes, prefix: str = "") -> str:
    """A large file, uploaded as clients do; its SHA-256."""
    oid = hashlib.sha256(content).hexdigest()
    asked = {"operation": "upload", "transfers": ["basic"], "objects": [{"oid": oid, "size": len(content)}]}
    answer = client.post(f"/{prefix}{repo}.git/info/lfs/objects/batch", json=asked)
    assert answer.status_code == 200, answer.text
    (found,) = answer.json()["objects"]
    if "actions" in found:
        # Without the token: the address is the permission.
        sent = httpx.put(found["actions"]["upload"]["href"], content=content)
        assert sent.status_code == 200, sent.text
    return oid


def send_lines(
    client: httpx.Client, repo: str, *lines: tuple[str, dict[str, Any]], rev: str = "main", query: str = ""
) -> httpx.Response:
    """A commit of any lines; a header comes first unless one of them is."""
    given = lines if any(key == "header" for key, _ in lines) else (("header", {"summary": "A change"}), *lines)
    body = "\n".join(json.dumps({"key": key, "value": value}) for key, value in given)
    return send_body(client, repo, body.encode(), rev=rev, query=query)


def send_body(client: httpx.Client, repo: str, body: bytes, *, rev: str = "main", query: str = "") -> httpx.Response:
    address = f"/api/models/{repo}/commit/{quote(rev, safe='')}{query}"
    return client.post(address, content=body, headers={"content-type": "application/x-ndjson"})


def text_file(path: str, content: str = "text", **more: str) -> tuple[str, dict[str, Any]]:
    return "file", {"path": path, "content": content, "encoding": "utf-8", **more}


def paths_in(client: httpx.Client, repo: str, rev: str = "main") -> set[str]:
    """Of files, without those a repo begins with."""
    found = client.get(f"/api/models/{repo}/tree/{quote(rev, safe='')}?recursive=true")
    assert found.status_code == 200, found.text
    return {entry["path"] for entry in found.json() if entry["type"] == "file"} - {".gitattributes"}


def head_of(client: httpx.Client, repo: str, rev: str = "main") -> str:
    sha: str = client.get(f"/api/models/{repo}/revision/{quote(rev, safe='')}").json()["sha"]
    return sha
