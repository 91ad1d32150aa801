"""Repos for a test, made over HTTP."""

from typing import Any

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
