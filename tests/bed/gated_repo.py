"""A gated model of an organization, and users with different roles."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
from tests.bed.people import api, create_organization, create_token, create_user
from tests.bed.repos import create_repo
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts.model import Organization, User

REPO = "acme/llm"
AT = f"/api/models/{REPO}/user-access-request"


@dataclass
class Scene:
    """Ada owns acme and its gated model; Wim may write there, Rob may read; Bob is a stranger."""

    hub: RunningHub
    acme: Organization
    ada_user: User
    wim_user: User
    rob_user: User
    bob_user: User
    ada: httpx.Client
    wim: httpx.Client
    rob: httpx.Client
    bob: httpx.Client
    visitor: httpx.Client


@contextmanager
def create_scene(hub: RunningHub) -> Iterator[Scene]:
    ada_user, wim_user, rob_user, bob_user = (create_user(hub, name) for name in ("ada", "wim", "rob", "bob"))
    acme = create_organization(hub, "acme", ada_user, plan="enterprise", wim="write", rob="read")
    with (
        api(hub, create_token(hub, ada_user)) as ada,
        api(hub, create_token(hub, wim_user)) as wim,
        api(hub, create_token(hub, rob_user)) as rob,
        api(hub, create_token(hub, bob_user)) as bob,
        api(hub) as visitor,
    ):
        files = [{"path": "README.md", "content": "# Card"}, {"path": "weights.txt", "content": "secret weights"}]
        create_repo(ada, REPO, files=files)
        yield Scene(hub, acme, ada_user, wim_user, rob_user, bob_user, ada, wim, rob, bob, visitor)


def gate(scene: Scene, mode: str | bool = "manual") -> None:
    saved = scene.ada.put(f"/api/models/{REPO}/settings", json={"gated": mode})
    assert (saved.status_code, saved.json()["gated"]) == (200, mode)


def ask(client: httpx.Client, **fields: str) -> httpx.Response:
    return client.post(f"/api/models/{REPO}/ask-access", json={"fields": fields})


def handle(client: httpx.Client, status: str, **more: Any) -> httpx.Response:
    return client.post(f"{AT}/handle", json={"status": status, **(more or {"user": "bob"})})


def listed(scene: Scene, status: str, query: str = "") -> list[str]:
    response = scene.ada.get(f"{AT}/{status}{query}")
    assert response.status_code == 200, response.text
    return [found["user"]["user"] for found in response.json()]
