"""A hub with Ada's repo, and clones of it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.bed.git import WorkingCopy, clone_repo, repo_url
from tests.bed.people import api, create_token, create_user
from tests.bed.repos import create_repo
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts.model import User
from hubgate.server.hub.repos import store
from hubgate.server.resources import Hub
from hubgate.server.storage.database import Tx


@dataclass(frozen=True)
class Scene:
    hub: RunningHub
    folder: Path
    ada: User
    token: str
    client: httpx.Client

    def clone(self, name: str, repo: str = "ada/tiny", token: str | None = None) -> WorkingCopy:
        """As Ada, unless another token is given."""
        return clone_repo(self.hub, repo, self.folder / name, token or self.token)

    def url(self, repo: str = "ada/tiny", token: str | None = None, user: str = "hf_user") -> str:
        return repo_url(self.hub.url, repo, token, user)

    def events(self, repo: str = "ada/tiny", repo_type: str = "model") -> list[dict[str, Any]]:
        """Payloads, in order; their numbers have no gap."""
        found = self.client.get(f"/api/{repo_type}s/{repo}/events?limit=1000").json()
        assert [event["seq"] for event in found] == list(range(1, len(found) + 1))
        return [event["payload"] for event in found]

    def refs(self, repo: str = "tiny") -> dict[str, str]:
        """From the database."""

        async def unit(tx: Tx) -> dict[str, str]:
            found = await store.named(tx, "model", "ada", repo)
            return dict(await store.refs(tx, found.id)) if found else {}

        async def work(opened: Hub) -> dict[str, str]:
            return await opened.db.read_long(unit)

        return self.hub.call(work)

    def repo_folder(self, repo_id: str) -> Path:
        return self.hub.settings.data_dir / "repos" / repo_id[-2:] / f"{repo_id}.git"

    @property
    def in_quarantine(self) -> list[Path]:
        return list((self.hub.settings.data_dir / "repos/incoming").glob("*"))


@pytest.fixture
def scene(hub: RunningHub, tmp_path: Path) -> Iterator[Scene]:
    with _set(hub, tmp_path) as scene:
        yield scene


@pytest.fixture
def sqlite_scene(sqlite_hub: RunningHub, tmp_path: Path) -> Iterator[Scene]:
    """For tests of requests that are rejected for their content alone."""
    with _set(sqlite_hub, tmp_path) as scene:
        yield scene


@contextmanager
def _set(hub: RunningHub, folder: Path) -> Iterator[Scene]:
    ada = create_user(hub, "ada")
    token = create_token(hub, ada)
    with api(hub, token) as client:
        create_repo(client, "tiny")
        yield Scene(hub, folder, ada, token, client)
