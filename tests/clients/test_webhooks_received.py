"""Receivers written by others, with real events: huggingface_hub's own, and libraries that verify signatures."""

import base64
import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from tests.bed.clients import Client, Conversation
from tests.bed.clock import FrozenClock
from tests.bed.engines import SqliteEngine, settings_for
from tests.bed.git import clone_repo
from tests.bed.node import CLIENTS, NODE
from tests.bed.people import api, create_token, create_user
from tests.bed.processes import free_port
from tests.bed.repos import create_commit, create_repo
from tests.bed.running_hub import RunningHub
from tests.bed.sites import PROGRAMS
from tests.bed.webhooks import Received, Receiver, create_webhook, run_receiver, settle

from hubgate.server.clock import system_clock

# huggingface_hub with gradio, and standardwebhooks.
ENVIRONMENT = "webhooks-2.4"
SECRET, OTHER = ("whsec_" + base64.b64encode(letter * 24).decode() for letter in (b"a", b"b"))
VERIFY = """
import json, sys
from standardwebhooks.webhooks import Webhook, WebhookVerificationError
said = []
for secret, body, headers in json.load(sys.stdin):
    try:
        Webhook(secret if secret.startswith("whsec_") else secret.encode()).verify(body, headers)
        said.append("good")
    except WebhookVerificationError as error:
        said.append(str(error))
print(json.dumps(said))
"""
VERIFY_JS = """
import { readFileSync } from "node:fs";
import { Webhook } from "standardwebhooks";
const said = JSON.parse(readFileSync(0, "utf8")).map(([secret, body, headers]) => {
  try {
    new Webhook(secret, secret.startsWith("whsec_") ? {} : { format: "raw" }).verify(body, headers);
    return "good";
  } catch (error) {
    return error.message;
  }
});
console.log(JSON.stringify(said));
"""


@dataclass(frozen=True)
class Ground:
    hub: RunningHub
    ada: httpx.Client
    token: str


@pytest.fixture(scope="module")
def ground(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    """Its clock shows the current time: these receivers reject what is older than five minutes."""
    folder = tmp_path_factory.mktemp("hub")
    settings = settings_for(SqliteEngine(sqlite_template, folder).fresh_url(), folder, egress_allow="127.0.0.0/8")
    hub = RunningHub(settings, FrozenClock(system_clock()))
    hub.start()
    try:
        token = create_token(hub, create_user(hub, "ada"))
        with api(hub, token) as ada:
            yield Ground(hub, ada, token)
    finally:
        hub.stop()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with run_receiver() as started:
        yield started


@contextmanager
def webhooks_server(folder: Path, secret: str) -> Iterator[tuple[str, Conversation]]:
    """Its URL, and its output."""
    port = free_port()
    client = Client(ENVIRONMENT, folder, "http://127.0.0.1:9")
    program = str(PROGRAMS / "webhooks_server.py")
    variables = {"WEBHOOK_SECRET": secret, "GRADIO_ANALYTICS_ENABLED": "False", "NO_PROXY": "127.0.0.1"}
    with client.running("python", program, str(port), **variables) as server:
        yield server.until(r"POST (http\S+/webhooks/heard)")[1], server


def test_huggingface_hubs_server_receives_every_event(ground: Ground, tmp_path: Path) -> None:
    """`hf upload`, `git push` and all other changes reach its handler; deliveries with wrong secrets do not."""
    ada = ground.ada
    _made(ground, "theirs")
    with webhooks_server(tmp_path, "right") as (url, server):
        paths = {
            name: f"/api/settings/webhooks/{create_webhook(ada, url, 'user:ada', **more)['id']}"
            for name, more in {"right": {"secret": "right"}, "wrong": {"secret": "wrong"}, "none": {}}.items()
        }
        _upload(ground, tmp_path, "ada/theirs")
        _push(ground, tmp_path, "ada/theirs")
        _change_everything(ada, "ada/theirs")
        settle(ground.hub)
        logs = {name: ada.get(f"{path}/logs?limit=50").json() for name, path in paths.items()}
        for path in paths.values():
            ada.delete(path)
        assert {(log["state"], log["status"]) for log in logs["right"]} == {("delivered", 200)}
        assert {log["status"] for log in logs["wrong"] if log["attempts"]} == {403}
        assert {log["status"] for log in logs["none"] if log["attempts"]} == {401}
        assert "delivered" not in {log["state"] for name in ("wrong", "none") for log in logs[name]}
        heard = [json.loads(server.until(r"heard (\{.*\})")[1]) for _ in logs["right"]]
    told = {f"{one['event']['scope']} {one['event']['action']}" for one in heard}
    assert told == {"repo create", "repo.config update", "repo.content update", "repo move", "repo delete"}
    uploaded, pushed, *_ = (one for one in heard if one["event"]["scope"] == "repo.content")
    assert uploaded["repo"]["name"] == pushed["repo"]["name"] == "ada/theirs"
    assert [ref["ref"] for ref in uploaded["updatedRefs"]] == ["refs/heads/main"]
    assert sorted(ref["ref"] for ref in pushed["updatedRefs"]) == ["refs/heads/dev", "refs/heads/main"]
    assert uploaded["webhook"] == {"id": paths["right"].rpartition("/")[2], "version": 3}


def test_upload_and_push_are_one_event_each(ground: Ground, receiver: Receiver, tmp_path: Path) -> None:
    _made(ground, "counted")
    webhook = create_webhook(ground.ada, receiver.url, "model:ada/counted")
    _upload(ground, tmp_path, "ada/counted")
    settle(ground.hub)
    assert receiver.kinds == ["repo.content update"]
    _push(ground, tmp_path, "ada/counted")
    settle(ground.hub)
    ground.ada.delete(f"/api/settings/webhooks/{webhook['id']}")
    assert receiver.kinds == ["repo.content update"] * 2
    uploaded, pushed = (one.json for one in receiver.received)
    assert pushed["repo"]["headSha"] != uploaded["repo"]["headSha"]
    assert {ref["ref"]: ref["oldSha"] for ref in pushed["updatedRefs"]} == {
        "refs/heads/main": uploaded["repo"]["headSha"],
        "refs/heads/dev": None,
    }
    assert [int(one.headers["x-hubgate-sequence"]) for one in receiver.received] == [2, 3]


@pytest.mark.parametrize("secret", [SECRET, "correct horse"])
def test_libraries_accept_the_signature(ground: Ground, receiver: Receiver, tmp_path: Path, secret: str) -> None:
    """Also during a change of the secret, with both; afterwards only with the new one."""
    ada = ground.ada
    repo = f"signed-{len(secret)}"
    _made(ground, repo)
    path = f"/api/settings/webhooks/{create_webhook(ada, receiver.url, f'model:ada/{repo}', secret=secret)['id']}"

    def sent(text: bytes) -> Received:
        create_commit(ada, f"ada/{repo}", {"a.txt": text})
        settle(ground.hub)
        return receiver.received[-1]

    first = sent(b"one")
    assert ada.post(path, json={"secret": OTHER, "overlapSeconds": 20}).status_code == 200
    both = sent(b"two")
    ground.hub.clock.advance(seconds=21)
    last = sent(b"three")
    assert ada.delete(path).status_code == 200
    assert len({one.headers["webhook-id"] for one in (first, both, last)}) == 3
    forged = Received(first.headers, first.body.replace(b"main", b"evil"))
    right = [(secret, first), (secret, both), (OTHER, both), (OTHER, last)]
    wrong = [(OTHER, first), (secret, last), (secret, forged)]
    given = json.dumps([(key, one.body.decode(), _signed(one)) for key, one in right + wrong])
    expected = ["good"] * len(right) + ["No matching signature found"] * len(wrong)
    client = Client(ENVIRONMENT, tmp_path, ground.hub.url)
    done = client.run("python", "-c", VERIFY, given=given)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == expected
    in_node = [NODE, "--input-type=module", "--eval", VERIFY_JS]
    said = subprocess.run(in_node, cwd=CLIENTS, input=given, capture_output=True, text=True, timeout=60, check=False)
    assert said.returncode == 0, said.stderr
    assert json.loads(said.stdout) == expected


def test_published_key_verifies_deliveries_without_a_secret(ground: Ground, receiver: Receiver) -> None:
    """As in Standard Webhooks: `whpk_`, base64 of the raw key; `v1a,`, base64 of the signature."""
    ada = ground.ada
    _made(ground, "keyed")
    webhook = create_webhook(ada, receiver.url, "model:ada/keyed")
    create_commit(ada, "ada/keyed", {"a.txt": b"one"})
    settle(ground.hub)
    assert ada.delete(f"/api/settings/webhooks/{webhook['id']}").status_code == 200
    (one,) = receiver.received
    prefix, _, encoded = webhook["publicKey"].partition("_")
    version, _, signature = one.headers["webhook-signature"].partition(",")
    assert (prefix, version) == ("whpk", "v1a")
    key = Ed25519PublicKey.from_public_bytes(base64.b64decode(encoded, validate=True))
    content = f"{one.headers['webhook-id']}.{one.headers['webhook-timestamp']}.".encode() + one.body
    # Raises if it does not verify.
    key.verify(base64.b64decode(signature, validate=True), content)
    assert "x-webhook-secret" not in one.headers


def _signed(one: Received) -> dict[str, str]:
    return {name: value for name, value in one.headers.items() if name.startswith("webhook-")}


def _made(ground: Ground, repo: str) -> None:
    """Advances the clock, so that later watchers do not receive its creation."""
    create_repo(ground.ada, repo)
    settle(ground.hub)


def _upload(ground: Ground, folder: Path, repo: str) -> None:
    (folder / "weights.bin").write_bytes(b"0" * 1000)
    client = Client("huggingface_hub-2.4", folder, ground.hub.url)
    done = client.run("hf", "upload", repo, "weights.bin", token=ground.token, HF_HUB_DISABLE_XET="1")
    assert done.returncode == 0, done.stderr


def _push(ground: Ground, folder: Path, repo: str) -> None:
    """Two commits and a branch in one push."""
    work = clone_repo(ground.hub, repo, folder / f"work-{repo.replace('/', '-')}", ground.token)
    for text in ("one", "two"):
        work.commit("notes.txt", text)
    work.git("branch", "dev")
    work.git("push", "-q", "origin", "main", "dev")


def _change_everything(ada: httpx.Client, repo: str) -> None:
    """All other changes of a repo that cause events."""
    answers = [
        ada.post(f"/api/models/{repo}/branch/other", json={}),
        ada.post(f"/api/models/{repo}/tag/main", json={"tag": "v1"}),
        ada.put(f"/api/models/{repo}/settings", json={"private": True}),
        ada.put(f"/api/models/{repo}/settings", json={"private": False, "gated": "auto"}),
        ada.post("/api/repos/create", json={"name": "short-lived", "type": "dataset"}),
        ada.post("/api/repos/move", json={"fromRepo": repo, "toRepo": f"{repo}-moved", "type": "model"}),
        ada.request("DELETE", "/api/repos/delete", json={"name": "short-lived", "type": "dataset"}),
    ]
    assert {answer.status_code for answer in answers} <= {200, 201}, [answer.text for answer in answers]
