"""The hub's API, called in this process: the same routes, checks and use cases as over the network."""

import base64
import contextlib
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from hubgate.server.app import build_app
from hubgate.server.resources import Hub


@dataclass(frozen=True)
class Api:
    _client: httpx.AsyncClient

    async def call(self, method: str, path: str, token: str, body: object = None) -> Any:
        content = None if body is None else json.dumps(body).encode()
        return await self._send(method, path, token, content, "application/json")

    async def commit(
        self,
        repo: str,
        token: str,
        summary: str,
        files: Mapping[str, str | bytes],
        *,
        kind: str = "model",
        **query: str,
    ) -> Any:
        lines: list[object] = [{"key": "header", "value": {"summary": summary}}]
        for path, content in files.items():
            data = content if isinstance(content, bytes) else content.encode()
            value = {"path": path, "content": base64.b64encode(data).decode(), "encoding": "base64"}
            lines.append({"key": "file", "value": value})
        path = str(httpx.URL(f"/api/{kind}s/{repo}/commit/main", params=query))
        return await self._send("POST", path, token, "\n".join(map(json.dumps, lines)).encode(), "application/x-ndjson")

    async def _send(self, method: str, path: str, token: str, content: bytes | None, media_type: str) -> Any:
        headers = {"authorization": f"Bearer {token}"} | ({"content-type": media_type} if content else {})
        response = await self._client.request(method, path, content=content, headers=headers)
        if response.is_error:
            # A bug in the demo: a hub that it has filled itself rejects nothing.
            raise RuntimeError(f"{method} {path}: {response.status_code} {response.text[:300]}")
        return response.json() if response.content else None


@contextlib.asynccontextmanager
async def open_api(hub: Hub) -> AsyncIterator[Api]:
    transport = httpx.ASGITransport(build_app(hub))
    async with httpx.AsyncClient(transport=transport, base_url=hub.settings.base_url) as client:
        yield Api(client)
