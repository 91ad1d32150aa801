"""Hubs where apps register themselves, and such apps."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
from tests.bed.apps import Client
from tests.bed.engines import Engine, settings_for
from tests.bed.running_hub import RunningHub, run_hub

from hubgate.server.oauth.apps import store
from hubgate.server.resources import Hub

PATH = "/oauth/register"
REDIRECT = "http://127.0.0.1:3334/oauth/callback"


@contextmanager
def open_to_registration(engine: Engine, folder: Path, mode: str = "on") -> Iterator[RunningHub]:
    with run_hub(settings_for(engine.fresh_url(), folder, dynamic_registration=mode)) as hub:
        yield hub


def register(hub: RunningHub, token: str = "", address: str = "", **metadata: object) -> httpx.Response:
    document = {
        "client_name": "Toolbox",
        "redirect_uris": [REDIRECT],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
        **metadata,
    }
    headers = {"authorization": f"Bearer {token}"} if token else {}
    if address:
        headers["x-forwarded-for"] = address
    with hub.client(headers=headers) as anyone:
        return anyone.post(PATH, json={name: value for name, value in document.items() if value is not None})


def self_registered(hub: RunningHub, **metadata: object) -> Client:
    answer = register(hub, "", "", **metadata)
    assert answer.status_code == 201, answer.text
    client_id = answer.json()["client_id"]

    async def find(opened: Hub) -> Client:
        app = await store.find(opened.db, client_id)
        assert app is not None
        return Client(hub, app, None)

    return hub.call(find)
