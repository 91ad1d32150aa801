"""A running hub on either engine, with a user who creates repos."""

import contextlib
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx
from tests.bed.processes import hub_process, hubgate

from bench.http_requests import Server
from bench.workspace import Workspace

SQLITE, POSTGRES = "hubgate serve, SQLite", "hubgate serve, PostgreSQL"
USER = "ada"


@dataclass(frozen=True)
class RepoHub:
    server: Server
    url: str
    token: str
    # Arguments for `hubgate.server.settings.load`, to open the same hub in this process.
    settings: Mapping[str, str]

    @property
    def authorization(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    def client(self) -> httpx.Client:
        return httpx.Client(base_url=self.url, headers=self.authorization, timeout=60, verify=False)

    def folder_of(self, repo_id: str) -> Path:
        return Path(self.settings["data_dir"]) / "repos" / repo_id[-2:] / f"{repo_id}.git"


@contextlib.contextmanager
def repo_hub_process(workspace: Workspace, name: str, subject: str = "repos") -> Iterator[RepoHub]:
    engine = name.rpartition(" ")[2].lower()
    folder = workspace.subfolder(f"{subject}-{engine}")
    settings: dict[str, str] = {}
    if name == POSTGRES:
        settings = {"database_url": workspace.postgres_database(subject), "secret_key": secrets.token_urlsafe(48)}
    variables = {f"HUBGATE_{key.upper()}": value for key, value in settings.items()}
    with hub_process(folder, **variables) as hub:
        _admin(folder, variables, "user", "create", USER, "--email", "ada@example.org", "--verified")
        token = _admin(folder, variables, "token", "create", USER, "--role", "write")
        opened = {**settings, "base_url": hub.url, "data_dir": str(folder / "var")}
        yield RepoHub(Server.of(hub), hub.url, token, opened)


def _admin(folder: Path, variables: Mapping[str, str], *arguments: str) -> str:
    done = hubgate("admin", *arguments, cwd=folder, stdin=b"", **variables)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
