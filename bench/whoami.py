"""`GET /api/whoami-v2` on both engines: the look-up of a token with its user and organizations."""

import contextlib
import secrets
from pathlib import Path

from tests.bed.processes import HubProcess, hub_process, hubgate

from bench.harness import Table
from bench.http_requests import BARE, Contestant, Server, bare_process, compare, repeated_get
from bench.workspace import Workspace

PATH = "/api/whoami-v2"
SQLITE, POSTGRES = "hubgate serve, SQLite", "hubgate serve, PostgreSQL"
ORGANIZATIONS = ("acme", "apex", "zeta")


def measure(workspace: Workspace) -> list[Table]:
    with contextlib.ExitStack() as stack:

        def hub_on(name: str, **variables: str) -> Contestant:
            folder = workspace.subfolder(f"whoami-{name}")
            hub = stack.enter_context(hub_process(folder, **variables))
            token = _token(hub, folder, variables)
            return repeated_get(Server.of(hub), PATH, {"Authorization": f"Bearer {token}"})

        sqlite = hub_on("sqlite")
        postgres = hub_on(
            "postgres",
            HUBGATE_DATABASE_URL=workspace.postgres_database("whoami"),
            HUBGATE_SECRET_KEY=secrets.token_urlsafe(48),
        )
        bare = Contestant(stack.enter_context(bare_process({PATH: sqlite.response()})), sqlite.requests)
        return [compare(workspace, f"HTTP, GET {PATH}", {BARE: bare, SQLITE: sqlite, POSTGRES: postgres})]


def _token(hub: HubProcess, folder: Path, variables: dict[str, str]) -> str:
    """The token of a user in several organizations, created with the operator's commands."""

    def admin(*arguments: str) -> str:
        done = hubgate("admin", *arguments, cwd=folder, stdin=b"", **variables)
        assert done.returncode == 0, (hub.url, done.stderr)
        return done.stdout.strip()

    admin("user", "create", "ada", "--email", "ada@example.org", "--fullname", "Ada L", "--verified")
    for name in ORGANIZATIONS:
        admin("org", "create", name, "--owner", "ada")
    return admin("token", "create", "ada", "--role", "read")
