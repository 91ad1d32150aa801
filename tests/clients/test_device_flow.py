"""Programs without a browser sign users in: the `hf` command, openid-client, requests-oauthlib, Authlib, curl."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from tests.bed import devices
from tests.bed.apps import SCOPES, create_app
from tests.bed.clients import Client, Conversation
from tests.bed.exchange import ACCESS_TOKEN, create_exchange_app
from tests.bed.node import CLIENTS, NODE
from tests.bed.people import create_organization, create_user
from tests.bed.processes import until
from tests.bed.running_hub import RunningHub
from tests.bed.sites import PROGRAMS, sign_in

CODE = r"(http\S+user_code=)?([BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4})"
TOKEN = "/oauth/token"


def approve(page: Page, address: str, code: str, name: str) -> None:
    """The user approves in a browser without a session."""
    page.goto(address)
    sign_in(page, name)
    expect(page.get_by_label("Code the device shows")).to_have_value(code)
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_text(code, exact=True).first).to_be_visible()
    page.get_by_role("button", name="Yes, my device shows this code").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Done. You can return to your device.")


def home_of(hub: RunningHub, tmp_path: Path, name: str) -> Client:
    home = tmp_path / "home"
    home.mkdir()
    return Client(name, home, hub.url)


@pytest.mark.browser
def test_hf_auth_login_works(hub_today: RunningHub, tmp_path: Path, page: Page) -> None:
    """Afterwards it works repeatedly without refreshing its token."""
    hub = hub_today
    ada = create_user(hub, "ada")
    create_organization(hub, "acme", ada)
    client = home_of(hub, tmp_path, "huggingface_hub-2.4")
    with client.running("hf", "auth", "login") as login:
        found = login.until(CODE)
        code = found.group(2)
        approve(page, f"{hub.url}/oauth/device?user_code={code}", code, "ada")
        # Its second poll is five seconds after the first by its own clock; the hub's clock does not advance.
        hub.clock.advance(10)
        login.finish()
    assert "ada" in login.output
    asked = hub.log.count(TOKEN)
    for _ in range(3):
        done = client.run("hf", "auth", "whoami")
        assert done.returncode == 0, done.stderr
        assert "user: ada" in done.stdout
    until(lambda: hub.log.count("/api/whoami-v2") >= 3)
    assert hub.log.count(TOKEN) == asked, "no refresh"


def in_node(hub: RunningHub, tmp_path: Path, **variables: str) -> Conversation:
    text = (PROGRAMS / "device_flow.mjs").read_text()
    process = subprocess.Popen(
        [NODE, "--input-type=module", "--eval", text],
        cwd=CLIENTS,
        env={"HOME": str(tmp_path), "HUB": hub.url, "SCOPES": " ".join(SCOPES), **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return Conversation(process)


@pytest.mark.parametrize("confidential", [True, False], ids=["confidential", "public"])
def test_openid_client_uses_the_device_flow(sqlite_today: RunningHub, tmp_path: Path, confidential: bool) -> None:
    hub, ada = sqlite_today, create_user(sqlite_today, "ada")
    app = create_app(hub, create_user(hub, "olga"), confidential=confidential, refresh_tokens=True)
    node = in_node(hub, tmp_path, CLIENT_ID=app.id, CLIENT_SECRET=app.secret or "")
    try:
        found = node.until(CODE)
        assert found.group(1) == f"{hub.url}/oauth/device?user_code="
        devices.approve(hub, ada, found.group(2), " ".join(SCOPES))
        said = json.loads(node.finish().strip().splitlines()[-1])
    finally:
        node.process.kill()
        node.process.communicate()
    assert (said["claims"]["sub"], said["claims"]["aud"]) == (ada.id, app.id)
    assert said["claims"]["auth_time"] <= hub.clock() // 1_000_000
    assert said["userinfo"]["preferred_username"] == "ada"
    assert said["refreshed"]["access_token"] != said["tokens"]["access_token"]


@pytest.mark.parametrize("confidential", [True, False], ids=["confidential", "public"])
@pytest.mark.parametrize("library", ["requests_oauthlib", "authlib"])
def test_python_libraries_use_the_device_flow(
    sqlite_today: RunningHub, tmp_path: Path, library: str, confidential: bool
) -> None:
    hub, ada = sqlite_today, create_user(sqlite_today, "ada")
    app = create_app(hub, create_user(hub, "olga"), confidential=confidential)
    variables = {"HUB": hub.url, "CLIENT_ID": app.id, "CLIENT_SECRET": app.secret or ""}
    program = str(PROGRAMS / f"{library}_device.py")
    with home_of(hub, tmp_path, library).running("python", program, **variables) as device:
        code = device.until(CODE).group(2)
        if library == "authlib":
            assert device.until(r"Not yet: (\S+)").group(1) == "authorization_pending"
        devices.approve(hub, ada, code, " ".join(SCOPES))
        device.send_line("approved")
        said = json.loads(device.finish().strip().splitlines()[-1])
    assert said["token"]["access_token"].startswith("hf_oauth_")
    assert (said["userinfo"]["sub"], said["userinfo"]["email"]) == (ada.id, "ada@example.org")


def curl(*arguments: str) -> Any:
    done = subprocess.run(["curl", "-s", *arguments], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("confidential", [True, False], ids=["confidential", "public"])
def test_curl_uses_the_device_flow(hub: RunningHub, confidential: bool) -> None:
    """As in the service's documentation."""
    ada, app = create_user(hub, "ada"), create_app(hub, confidential=confidential)
    proof = ["-u", f"{app.id}:{app.secret}"] if confidential else []
    started = curl(*proof, "-d", f"client_id={app.id}", f"{hub.url}/oauth/device")
    assert {"device_code", "user_code", "verification_uri"} <= started.keys()
    poll = [
        *proof,
        "-d",
        "grant_type=urn:ietf:params:oauth:grant-type:device_code",
        "-d",
        f"device_code={started['device_code']}",
        "-d",
        f"client_id={app.id}",
        f"{hub.url}/oauth/token",
    ]
    assert curl(*poll)["error"] == "authorization_pending"
    devices.approve(hub, ada, started["user_code"], " ".join(SCOPES))
    token = curl(*poll)["access_token"]
    assert curl("-H", f"Authorization: Bearer {token}", f"{hub.url}/api/whoami-v2")["name"] == "ada"
    assert curl(*poll)["error"] == "invalid_grant"


def test_curl_exchanges_a_token(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    app = create_exchange_app(hub, create_organization(hub, "acme", ada))

    def exchange(*more: str, proof: str = f"{app.id}:{app.secret}") -> Any:
        return curl(
            *("-u", proof, "-H", "Content-Type: application/x-www-form-urlencoded"),
            *("-d", "grant_type=urn:ietf:params:oauth:grant-type:token-exchange"),
            *("-d", "subject_token_type=urn:service:token-type:user-email"),
            *("--data-urlencode", "subject_token=ada@example.org", *more, f"{hub.url}/oauth/token"),
        )

    answer = exchange()
    assert (answer["expires_in"], answer["token_type"]) == (28800, "bearer")
    assert (answer["issued_token_type"], "refresh_token" in answer, "id_token" in answer) == (ACCESS_TOKEN, False, True)
    assert "id_token" not in exchange("-d", "scope=read-repos profile")
    assert exchange("-d", "scope=fly")["error"] == "invalid_scope"
    assert exchange(proof=f"{app.id}:wrong")["error"] == "invalid_client"
    token = answer["access_token"]
    whoami = curl("-H", f"Authorization: Bearer {token}", f"{hub.url}/api/whoami-v2")
    assert (whoami["name"], [org["name"] for org in whoami["orgs"]]) == ("ada", ["acme"])
