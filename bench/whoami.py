"""`GET /api/whoami-v2` on both engines: a token looked up with its user and organizations, and described."""

import contextlib
import secrets
from pathlib import Path

from tests.bed.processes import HubProcess, hub_process, hubgate

from bench.ground import Ground
from bench.harness import Table
from bench.serving import BARE, Contestant, Server, bare_process, compare, getting

PATH = "/api/whoami-v2"
SQLITE, POSTGRES = "hubgate serve, SQLite", "hubgate serve, PostgreSQL"
ORGANIZATIONS = ("acme", "apex", "zeta")


def measure(ground: Ground) -> list[Table]:
    with contextlib.ExitStack() as leaving:

        def hub_on(name: str, **variables: str) -> Contestant:
            folder = ground.subfolder(f"whoami-{name}")
            hub = leaving.enter_context(hub_process(folder, **variables))
            token = _token(hub, folder, variables)
            return getting(Server.of(hub), PATH, {"Authorization": f"Bearer {token}"})

        sqlite = hub_on("sqlite")
        postgres = hub_on(
            "postgres",
            HUBGATE_DATABASE_URL=ground.postgres_database("whoami"),
            HUBGATE_SECRET_KEY=secrets.token_urlsafe(48),
        )
        bare = Contestant(leaving.enter_context(bare_process({PATH: sqlite.answer()})), sqlite.requests)
        return [compare(ground, f"HTTP, GET {PATH}", {BARE: bare, SQLITE: sqlite, POSTGRES: postgres})]


def _token(hub: HubProcess, folder: Path, variables: dict[str, str]) -> str:
    """Of a user in a few organizations, as the operator makes them."""

    def admin(*arguments: str) -> str:
        done = hubgate("admin", *arguments, cwd=folder, stdin=b"", **variables)
        assert done.returncode == 0, (hub.url, done.stderr)
        return done.stdout.strip()

    admin("user", "create", "ada", "--email", "ada@example.org", "--fullname", "Ada L", "--verified")
    for name in ORGANIZATIONS:
        admin("org", "create", name, "--owner", "ada")
    return admin("token", "create", "ada", "--role", "read")
