"""Examples without pages: command-line tools, jobs, receivers and servers, each with a real hub."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.bed import devices
from tests.bed.apps import create_app, tokens_for
from tests.bed.clients import Conversation
from tests.bed.clock import FrozenClock
from tests.bed.engines import SqliteEngine, settings_for
from tests.bed.exchange import create_exchange_app
from tests.bed.people import api, create_organization, create_token, create_user
from tests.bed.processes import ROOT, free_port
from tests.bed.repos import create_commit, create_repo
from tests.bed.resource_servers import TOOLS, register
from tests.bed.running_hub import RunningHub
from tests.bed.webhooks import create_webhook, logs, settle
from tests.clients.examples import EXAMPLES, node, python, running

from hubgate.receiver.testing import signed_delivery
from hubgate.server.clock import system_clock

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


@pytest.fixture(scope="module")
def hub(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningHub]:
    """Receivers reject deliveries that are old by their own clock."""
    folder = tmp_path_factory.mktemp("hub")
    settings = settings_for(SqliteEngine(sqlite_template, folder).fresh_url(), folder, egress_allow="127.0.0.0/8")
    hub = RunningHub(settings, FrozenClock(system_clock()))
    hub.start()
    try:
        yield hub
    finally:
        hub.stop()


def test_command_line_tool_signs_in_with_a_code(hub: RunningHub, tmp_path: Path) -> None:
    lin, app = create_user(hub, "lin"), create_app(hub, None, scopes=("openid", "profile"), confidential=False)
    stored = tmp_path / "config/token"
    given = {"HUB": hub.url, "CLIENT_ID": app.id, "TOKEN_FILE": str(stored)}

    def run(command: str) -> "Iterator[Conversation]":
        return running(python("", str(EXAMPLES / "device_login.py"), command), tmp_path, **given)

    with run("login") as login:
        code = login.until(r"check that it shows (\S+)")[1]
        devices.approve(hub, lin, code, "openid profile")
        # The tool polls every five seconds by its own clock; the hub's clock does not advance.
        hub.clock.advance(10)
        assert login.finish() == "Signed in as lin\n"
    assert stored.stat().st_mode & 0o777 == 0o600
    token = stored.read_text()
    with run("whoami") as whoami:
        assert whoami.finish() == "Signed in as lin\n"
    with run("logout") as logout:
        assert logout.finish() == ""
    assert not stored.exists()
    with api(hub, token) as revoked:
        assert revoked.get("/oauth/userinfo").status_code == 401


def test_nightly_job_acts_as_each_member(hub: RunningHub, tmp_path: Path) -> None:
    mia, _ = create_user(hub, "mia"), create_user(hub, "noa")
    acme = create_organization(hub, "acme", mia, noa="read")
    app = create_exchange_app(hub, acme, scopes=("openid", "read-repos"))
    with api(hub, create_token(hub, mia)) as admin:
        create_repo(admin, "acme/rows", "dataset", private=True)
    given = {"HUB": hub.url, "CLIENT_ID": app.id, "CLIENT_SECRET": app.secret or ""}
    with running(python("hubgate", str(EXAMPLES / "exchange_job.py"), "acme"), tmp_path, **given) as job:
        said, _ = job.process.communicate("mia@example.org\ngone@example.org\nnoa@example.org\n", timeout=60)
    lines = said.splitlines()
    assert lines[0] == "mia@example.org: 1 datasets"
    assert lines[1].startswith("gone@example.org: ")
    assert lines[2] == "noa@example.org: 1 datasets"
    assert job.process.returncode == 1
    with api(hub, create_token(hub, mia)) as admin:
        live = admin.get(f"/api/organizations/acme/settings/applications/{app.id}/tokens").json()
    assert live == [], "the job revokes its tokens"


@contextmanager
def watched_dataset(hub: RunningHub, owner: str, url: str) -> Iterator[tuple[httpx.Client, dict[str, Any]]]:
    with api(hub, create_token(hub, create_user(hub, owner))) as user:
        create_repo(user, "corpus", "dataset")
        settle(hub)
        yield user, create_webhook(user, url, f"dataset:{owner}/corpus", secret=SECRET)


def test_receiver_trains_when_a_dataset_changes(hub: RunningHub, tmp_path: Path) -> None:
    port = free_port()
    with watched_dataset(hub, "ray", f"http://127.0.0.1:{port}/webhooks/events") as (ray, webhook):
        given = {
            "HUBGATE_ENDPOINT": hub.url,
            "HUBGATE_TOKEN": ray.headers["authorization"].removeprefix("Bearer "),
            "HUBGATE_NO_EXPERIMENTAL_WARNING": "1",
            "WEBHOOK_SECRET": SECRET,
            "MODEL": "ray/counts",
            "PYTHONPATH": str(ROOT / "src"),
        }
        with running(python("hubgate", str(EXAMPLES / "retrain.py")), tmp_path, port, **given) as receiver:
            sha = create_commit(ray, "ray/corpus", {"a.txt": b"a rose is a rose"}, repo_type="dataset")
            settle(hub)
            assert [delivery["state"] for delivery in logs(ray, webhook)] == ["delivered"]
            receiver.until(f"Trained on ray/corpus at {sha}")
        weights = ray.get("/ray/counts/resolve/main/weights.json", follow_redirects=True)
        assert weights.json() == {"a": 2, "is": 1, "rose": 2}


def test_receiver_in_node_accepts_only_signed_deliveries(hub: RunningHub, tmp_path: Path) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}/"
    with running(node(str(EXAMPLES / "receiver.mjs")), tmp_path, port, WEBHOOK_SECRET=SECRET) as receiver:
        with watched_dataset(hub, "sam", url) as (sam, webhook):
            create_commit(sam, "sam/corpus", {"a.txt": b"a"}, repo_type="dataset")
            settle(hub)
            assert [delivery["state"] for delivery in logs(sam, webhook)] == ["delivered"]
        receiver.until("repo.content update in sam/corpus")
        good = signed_delivery("repo.create", secret=SECRET)
        forged, old = (
            signed_delivery("repo.create", secret="wrong"),
            signed_delivery("repo.create", secret=SECRET, at=1),
        )
        with httpx.Client() as sender:

            def post(headers: dict[str, str], body: bytes) -> int:
                return sender.post(url, headers=headers, content=body).status_code

            assert post(good.headers, good.body) == post(good.headers, good.body) == 204
            assert post(good.headers, good.body + b" ") == 401
            assert [post(each.headers, each.body) for each in (forged, old)] == [401, 401]
            assert post({}, b"{}") == 401
            assert post(good.headers, b" " * (2**20 + 1)) == 413
            assert sender.get(url).status_code == 405
        receiver.process.kill()
        rest, _ = receiver.process.communicate()
        assert rest.count("repo create in") == 1, "the second delivery had the same id"


def test_mcp_server_accepts_tokens_of_the_hub(hub: RunningHub, tmp_path: Path) -> None:
    tia, uma = create_user(hub, "tia"), create_user(hub, "uma")
    port = free_port()
    identifier = f"http://127.0.0.1:{port}/mcp"
    server = register(hub, tia, identifier, (TOOLS,))
    given = {"HUB": hub.url, "IDENTIFIER": identifier}
    given |= {"RESOURCE_ID": server.server.id, "RESOURCE_SECRET": server.secret}
    command = python("mcp", "-m", "uvicorn", "--app-dir", str(EXAMPLES), "--port", str(port), "mcp_server:app")
    app = create_app(hub, None)
    with running(command, tmp_path, port, **given):
        token = tokens_for(app, tia, resource=identifier, scope="openid mcp:tools")["access_token"]
        assert call(identifier, token, "add_note", text="buy milk") == (200, 1)
        assert call(identifier, token, "list_notes") == (200, ["buy milk"])
        foreign = tokens_for(app, uma, resource=identifier, scope="openid")["access_token"]
        assert call(identifier, foreign, "list_notes")[0] == 401, "a server on this computer is for its owner"
        refused = httpx.post(identifier, json={}, headers={"accept": "application/json, text/event-stream"})
        assert refused.status_code == 401
        metadata = re.findall(r'resource_metadata="([^"]+)"', refused.headers["www-authenticate"])[0]
        assert httpx.get(metadata).json()["resource"] == identifier
        assert call(identifier, tokens_for(app, tia)["access_token"], "list_notes")[0] == 401
        app.post("/oauth/revoke", {"token": token})
        assert call(identifier, token, "list_notes")[0] == 401


def call(address: str, token: str, tool: str, **arguments: str) -> tuple[int, Any]:
    """The status and the result of one call, in a session of its own."""
    with httpx.Client(headers={"authorization": f"Bearer {token}"}, timeout=60) as client:
        client.headers["accept"] = "application/json, text/event-stream"
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
        opened = client.post(address, json=message("initialize", hello))
        if opened.status_code != 200:
            return opened.status_code, None
        client.headers["mcp-session-id"] = opened.headers["mcp-session-id"]
        client.post(address, json={"jsonrpc": "2.0", "method": "notifications/initialized"})
        answer = client.post(address, json=message("tools/call", {"name": tool, "arguments": arguments}))
        data = re.findall(r"^data: (\{.*)", answer.text, re.MULTILINE)[-1]
        return answer.status_code, json.loads(data)["result"]["structuredContent"]["result"]


def message(method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
