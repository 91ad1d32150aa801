"""huggingface_hub manages webhooks, in Python and by its command: every operation, field and error."""

import json
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.bed.clients import Client
from tests.bed.engines import SqliteEngine, settings_for
from tests.bed.people import api, create_organization, create_token, create_user
from tests.bed.repos import create_repo
from tests.bed.running_hub import RunningHub, run_hub
from tests.bed.sites import PROGRAMS
from tests.bed.webhooks import create_webhook, run_receiver, secret_of, settle

URL = "https://receiver.example/hook"
USER, ORGANIZATION = {"type": "user", "name": "ada"}, {"type": "org", "name": "acme"}
NO_SUCH = "Webhook not found."
NO_JOBS = "job: this hub does not run jobs. Send a url."


@pytest.fixture(scope="module")
def hub(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningHub]:
    folder = tmp_path_factory.mktemp("hub")
    url = SqliteEngine(sqlite_template, folder).fresh_url()
    with run_hub(settings_for(url, folder, egress_allow="127.0.0.0/8")) as started:
        create_organization(started, "acme", create_user(started, "ada"))
        yield started


@pytest.fixture
def token(hub: RunningHub) -> str:
    """The token of a new user without webhooks."""
    return create_token(hub, create_user(hub, f"user-{secrets.token_hex(4)}"))


@pytest.mark.parametrize("version", ["0.26", "2.4"])
def test_every_operation_works(hub: RunningHub, token: str, tmp_path: Path, version: str) -> None:
    client = Client(f"huggingface_hub-{version}", tmp_path, hub.url)
    done = client.run("python", str(PROGRAMS / "hf_webhooks.py"), URL, token=token)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    without_job = {} if version == "0.26" else {"job": None}
    made = {
        **without_job,
        "id": said["made"]["id"],
        "url": URL,
        "watched": [USER, ORGANIZATION, {"type": "model", "name": "bob/Later"}],
        "domains": ["repo", "discussion"],
        "secret": "my secret",
        "disabled": False,
    }
    least = {
        **made,
        "id": said["least"]["id"],
        "watched": [{"type": "dataset", "name": "ada/rows"}, USER],
        "secret": None,
    }
    assert (said["none yet"], said["made"], said["least"]) == ([], made, least)
    assert len(made["id"]) == 24
    # The secret is only in the answers that set it (O74).
    made["secret"] = None
    assert said["got"] == made
    # Both were created at the same time of this hub's clock.
    assert sorted(said["listed"], key=lambda one: one["id"]) == sorted([made, least], key=lambda one: one["id"])
    # Only the given fields change, though the client always sends an empty `watched`.
    made["url"] = f"{URL}/other"
    assert said["new url"] == made
    made["watched"] = [{"type": "space", "name": "ada/board"}]
    assert said["new watched"] == made
    made["domains"] = ["discussion"]
    assert said["new domains"] == made
    assert said["new secret"] == {**made, "secret": "another"}
    made |= {"url": URL, "watched": [USER], "domains": ["repo"]}
    assert said["all new"] == {**made, "secret": "a third"}
    made["disabled"] = True
    assert said["disabled"] == said["disabled twice"] == said["got disabled"] == made
    made["domains"] = ["repo", "discussion"]
    assert said["changed disabled"] == made
    assert said["enabled"] == {**made, "disabled": False}
    assert said["deleted"] is None
    assert said["left"] == [least]
    refusals = {
        "get gone": NO_SUCH,
        "update gone": NO_SUCH,
        "enable gone": NO_SUCH,
        "delete gone": NO_SUCH,
        "not an id": NO_SUCH,
        "nothing watched": "watched: ",
        "unknown type": "watched: ",
        "unknown domain": "domains: ",
        "no address": "url: ",
        "a secret with a line break": "secret: ",
        "without a token": "401",
    }
    if version != "0.26":
        refusals |= {"a job": NO_JOBS, "a job with secrets": NO_JOBS, "becomes a job": NO_JOBS}
    for name, text in refusals.items():
        kind, message = said[name]
        assert kind in ("HfHubHTTPError", "BadRequestError"), (name, said[name])
        assert text in message, (name, said[name])


def test_suspended_webhook_can_be_read(hub: RunningHub, token: str, tmp_path: Path) -> None:
    with run_receiver() as receiver, api(hub, token) as ada:
        receiver.status = 410
        owner = ada.get("/api/whoami-v2").json()["name"]
        made = create_webhook(ada, receiver.url, f"user:{owner}")
        create_repo(ada, "tiny")
        settle(hub)
    client = Client("huggingface_hub-2.4", tmp_path, hub.url)
    show = "from huggingface_hub import HfApi; print(HfApi().list_webhooks()[0].disabled)"
    assert client.run("python", "-c", show, token=token).stdout.strip() == "suspended-after-failure"
    enable = f"from huggingface_hub import HfApi; print(HfApi().enable_webhook('{made['id']}').disabled)"
    assert client.run("python", "-c", enable, token=token).stdout.strip() == "False"


def test_null_secret_is_ignored_only_in_requests_of_older_clients(hub: RunningHub, token: str) -> None:
    """These send it with the three other fields; otherwise null removes the secret, as an empty text does."""
    full = {"watched": [USER], "url": URL, "domains": ["repo"]}
    with api(hub, token) as client:
        made = create_webhook(client, URL, "user:ada", secret="kept")
        path = f"/api/settings/webhooks/{made['id']}"

        def secret_after(**changes: object) -> object:
            answer = client.post(path, json=changes)
            assert answer.status_code == 200, answer.text
            return secret_of(hub, made["id"])

        assert secret_after(**full, secret=None) == "kept"
        assert secret_after(watched=[], url=None, domains=None, secret=None) == "kept"
        assert secret_after(**full, secret="") is None
        assert secret_after(secret="again") == "again"
        assert secret_after(secret=None) is None


class _Command:
    """Many `hf` commands in one process; each must end as expected."""

    def __init__(self, client: Client, token: str) -> None:
        self._client, self._token = client, token

    def each(self, *commands: str, fails: bool = False) -> list[str]:
        given = json.dumps([command.split() for command in commands])
        done = self._client.run("python", str(PROGRAMS / "hf_commands.py"), token=self._token, given=given)
        assert done.returncode == 0, done.stderr
        said = json.loads(done.stdout)
        for command, (status, out, errors) in zip(commands, said, strict=True):
            assert (status != 0) is fails, (command, status, out, errors)
        return [f"{status}{out}{errors}" if fails else out + errors for status, out, errors in said]


def test_every_command_works(hub: RunningHub, token: str, tmp_path: Path) -> None:
    command = _Command(Client("huggingface_hub-2.4", tmp_path, hub.url), token)
    created, listed, quiet = command.each(
        f"webhooks create --url {URL} --watch user:ada --watch model:ada/tiny --domain repo --secret s3cret",
        "webhooks ls --format json",
        "webhooks ls --format quiet",
    )
    (row,) = json.loads(listed)
    webhook_id: str = row["id"]
    assert webhook_id in created
    assert webhook_id in quiet
    assert (row["url"], row["disabled"], row["domains"]) == (URL, False, ["repo"])
    assert row["watched"] == ["user:ada", "model:ada/tiny"]
    said = command.each(
        f"webhooks update {webhook_id} --url {URL}/2",
        f"webhooks update {webhook_id} --watch org:acme --domain discussion --domain repo",
        f"webhooks update {webhook_id} --secret other",
        f"webhooks disable {webhook_id}",
        f"webhooks info {webhook_id} --format json",
        f"webhooks enable {webhook_id}",
        f"webhooks info {webhook_id} --format json",
        f"webhooks create --url {URL} --watch bucket:ada/things",
        f"webhooks delete {webhook_id} --yes",
        "webhooks list --format json",
    )
    disabled, enabled = (json.loads(said[at]) for at in (4, 6))
    assert disabled["disabled"] is True
    expected: dict[str, Any] = {
        "url": f"{URL}/2",
        "watched": [ORGANIZATION],
        "domains": ["repo", "discussion"],
        "disabled": False,
    }
    assert enabled.get("secret") is None
    assert {name: enabled[name] for name in expected} == expected
    (left,) = json.loads(said[-1])
    assert left["watched"] == ["bucket:ada/things"]
    refused = command.each(
        f"webhooks info {webhook_id}",
        "webhooks create --job-id 687f911eaea852de79c4a50a --watch user:ada",
        f"webhooks update {left['id']} --job-id 687f911eaea852de79c4a50a",
        f"webhooks delete {webhook_id} --yes",
        fails=True,
    )
    for text, expected_text in zip(refused, (NO_SUCH, NO_JOBS, NO_JOBS, NO_SUCH), strict=True):
        assert expected_text in text
