"""huggingface_hub, old and new versions: whoami, signing in with a token, and the error for an invalid token."""

import json
from pathlib import Path

import pytest
from tests.bed.clients import Client
from tests.bed.people import create_organization, create_token, create_user
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts.tokens import personal

VERSIONS = ("0.26", "0.36", "1.28", "2.4")
NEWEST = "2.4"
WHOAMI = """
import json, huggingface_hub
print(json.dumps([huggingface_hub.__version__, huggingface_hub.whoami()]))
"""


def client_of(hub: RunningHub, version: str, tmp_path: Path) -> Client:
    home = tmp_path / "home"
    home.mkdir()
    return Client(f"huggingface_hub-{version}", home, hub.url)


def token_of_ada(hub: RunningHub) -> str:
    """Ada is in two organizations."""
    ada = create_user(hub, "ada")
    for name in ("zeta", "acme"):
        create_organization(hub, name, ada)
    return create_token(hub, ada, "write", "laptop")


@pytest.mark.parametrize("version", VERSIONS)
def test_whoami_describes_the_user(sqlite_hub: RunningHub, tmp_path: Path, version: str) -> None:
    client = client_of(sqlite_hub, version, tmp_path)
    done = client.run("python", "-c", WHOAMI, token=token_of_ada(sqlite_hub))
    assert done.returncode == 0, done.stderr
    run_version, said = json.loads(done.stdout)
    assert run_version.startswith(f"{version}.")
    assert (said["name"], [org["name"] for org in said["orgs"]]) == ("ada", ["acme", "zeta"])
    assert said["auth"]["accessToken"]["displayName"] == "laptop"


@pytest.mark.parametrize("version", VERSIONS)
def test_invalid_token_is_reported_as_such(sqlite_hub: RunningHub, tmp_path: Path, version: str) -> None:
    done = client_of(sqlite_hub, version, tmp_path).run("python", "-c", WHOAMI, token="hf_bad")
    assert (done.returncode, done.stdout) == (1, "")
    assert "Invalid user token." in done.stderr


@pytest.mark.parametrize("version", ["0.26", "0.36"])
def test_older_command_works(sqlite_hub: RunningHub, tmp_path: Path, version: str) -> None:
    client = client_of(sqlite_hub, version, tmp_path)
    done = client.run("huggingface-cli", "whoami", token=token_of_ada(sqlite_hub))
    assert done.returncode == 0, done.stderr
    assert " ".join(done.stdout.split()).partition(" Authenticated")[0].endswith("ada orgs: acme,zeta")


def test_hf_auth_whoami_describes_the_user(hub: RunningHub, tmp_path: Path) -> None:
    client = client_of(hub, NEWEST, tmp_path)
    done = client.run("hf", "auth", "whoami", token=token_of_ada(hub))
    assert done.returncode == 0, done.stderr
    lines = [line.strip() for line in done.stdout.splitlines()]
    assert lines[1:] == ["user: ada", "orgs: acme,zeta", f"endpoint: {hub.url}"]
    bad = client.run("hf", "auth", "whoami", token="hf_bad")
    assert (bad.returncode, bad.stdout) == (1, "")
    assert "Error: Invalid user token. The token from HF_TOKEN environment variable is invalid." in bad.stderr


def test_hf_auth_login_works_until_the_token_is_revoked(hub: RunningHub, tmp_path: Path) -> None:
    client, token = client_of(hub, NEWEST, tmp_path), token_of_ada(hub)
    refused = client.run("hf", "auth", "login", "--token", "hf_bad")
    assert refused.returncode == 1
    assert "Error: Invalid user token." in refused.stderr
    done = client.run("hf", "auth", "login", "--token", token)
    assert done.returncode == 0, done.stderr
    assert "The current active token is: `laptop`" in done.stderr
    assert "user: ada" in client.run("hf", "auth", "whoami").stdout

    async def revoke_all(opened) -> None:
        (user_id,) = await opened.db.one("SELECT id FROM users WHERE name = 'ada'")
        for found in await personal.of_user(opened.accounts, user_id):
            await personal.revoke(opened.accounts, user_id, found.id)

    hub.call(revoke_all)
    after = client.run("hf", "auth", "whoami")
    assert (after.returncode, after.stdout) == (1, "")
    assert "Invalid user token" in after.stderr
