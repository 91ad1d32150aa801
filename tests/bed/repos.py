"""Repos and commits, created over HTTP."""

import base64
import hashlib
import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

import httpx
from tests.bed import lean_http


def create_repo(client: httpx.Client, name: str, repo_type: str = "model", **more: Any) -> dict[str, Any]:
    """Create a repo, whose name may include a namespace; the hub's response."""
    namespace, _, repo_name = name.rpartition("/")
    body = {"name": repo_name, "organization": namespace or None, "type": repo_type, **more}
    if repo_type == "space":
        body.setdefault("sdk", "static")
    response = client.post("/api/repos/create", json=body)
    assert response.status_code == 200, response.text
    created: dict[str, Any] = response.json()
    return created


def send_commit(
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
    """Send a commit with inline files."""
    lines: list[dict[str, Any]] = [{"key": "header", "value": {"summary": summary, "parentCommit": parent}}]
    for path, content in files.items():
        text = base64.b64encode(content).decode()
        lines.append({"key": "file", "value": {"content": text, "path": path, "encoding": "base64"}})
    lines += [{"key": "deletedEntry", "value": {"path": path}} for path in delete]
    body = "\n".join(map(json.dumps, lines)).encode()
    address = f"/api/{repo_type}s/{repo}/commit/{quote(rev, safe='')}{query}"
    return client.post(address, content=body, headers={"content-type": "application/x-ndjson"})


def create_commit(client: httpx.Client, repo: str, files: dict[str, bytes], **more: Any) -> str:
    """Send a commit, which must succeed; its id."""
    response = send_commit(client, repo, files, **more)
    assert response.status_code == 200, response.text
    sha: str = response.json()["commitOid"]
    return sha


def send_large(client: httpx.Client, repo: str, content: bytes, prefix: str = "") -> str:
    """Upload a large file as clients do; its SHA-256."""
    oid = hashlib.sha256(content).hexdigest()
    body = {"operation": "upload", "transfers": ["basic"], "objects": [{"oid": oid, "size": len(content)}]}
    response = client.post(f"/{prefix}{repo}.git/info/lfs/objects/batch", json=body)
    assert response.status_code == 200, response.text
    (found,) = response.json()["objects"]
    if "actions" in found:
        # Without a token: the signed address grants access.
        uploaded = lean_http.put(found["actions"]["upload"]["href"], content=content)
        assert uploaded.status_code == 200, uploaded.text
    return oid


def send_lines(
    client: httpx.Client, repo: str, *lines: tuple[str, dict[str, Any]], rev: str = "main", query: str = ""
) -> httpx.Response:
    """Send a commit of these lines; a header is added unless the lines contain a header."""
    given = lines if any(key == "header" for key, _ in lines) else (("header", {"summary": "A change"}), *lines)
    body = "\n".join(json.dumps({"key": key, "value": value}) for key, value in given)
    return send_body(client, repo, body.encode(), rev=rev, query=query)


def send_body(client: httpx.Client, repo: str, body: bytes, *, rev: str = "main", query: str = "") -> httpx.Response:
    address = f"/api/models/{repo}/commit/{quote(rev, safe='')}{query}"
    return client.post(address, content=body, headers={"content-type": "application/x-ndjson"})


def text_file(path: str, content: str = "text", **more: str) -> tuple[str, dict[str, Any]]:
    return "file", {"path": path, "content": content, "encoding": "utf-8", **more}


def paths_in(client: httpx.Client, repo: str, rev: str = "main") -> set[str]:
    """The paths of all files except those of a new repo."""
    found = client.get(f"/api/models/{repo}/tree/{quote(rev, safe='')}?recursive=true")
    assert found.status_code == 200, found.text
    return {entry["path"] for entry in found.json() if entry["type"] == "file"} - {".gitattributes"}


def head_of(client: httpx.Client, repo: str, rev: str = "main") -> str:
    sha: str = client.get(f"/api/models/{repo}/revision/{quote(rev, safe='')}").json()["sha"]
    return sha
