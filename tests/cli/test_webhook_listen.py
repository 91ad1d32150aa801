"""`hubgate webhooks listen`, and short ids in the commands on webhooks."""

import io
import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.bed.engines import SqliteEngine, settings_for
from tests.bed.listeners import ListenProcess, listening
from tests.bed.people import api, create_organization, create_token, create_user
from tests.bed.processes import until
from tests.bed.receiver_library import SECRET, serve_receiver
from tests.bed.repos import create_commit, create_repo
from tests.bed.running_hub import RunningHub, run_hub
from tests.bed.webhooks import Receiver, logs, run_receiver, settle
from tests.cli.test_user_commands import Shell

from hubgate import Hub
from hubgate.cli.user.cursors import StoredCursor
from hubgate.cli.user.interrupts import Interrupts
from hubgate.cli.user.listening import EventHandler, Listener, Patience
from hubgate.client import Unreachable
from hubgate.receiver import WebhookPayload, WebhooksServer
from hubgate.server.clock import SECOND
from hubgate.server.resources import Hub as OpenedHub
from hubgate.server.webhooks.retention.deletion import Retention

PATH = "/api/settings/webhooks"


@pytest.fixture
def hub(sqlite_template: Path, tmp_path: Path) -> Iterator[RunningHub]:
    with run_hub(settings_for(SqliteEngine(sqlite_template, tmp_path).fresh_url(), tmp_path)) as started:
        yield started


@pytest.fixture
def shell(hub: RunningHub, tmp_path: Path) -> Shell:
    ada = create_user(hub, "ada")
    create_organization(hub, "acme", ada)
    return Shell(hub, tmp_path, create_token(hub, ada))


@pytest.fixture
def ada(hub: RunningHub, shell: Shell) -> Iterator[httpx.Client]:
    with api(hub, shell.variables["HUBGATE_TOKEN"]) as client:
        yield client


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with run_receiver() as started:
        yield started


def begun(listener: ListenProcess, client: httpx.Client, path: str = PATH) -> dict[str, Any]:
    """The webhook that the command created."""
    listener.wait_for("✓ Created webhook")
    (created,) = client.get(path).json()
    found: dict[str, Any] = created
    return found


def test_events_are_shown_and_forwarded(hub: RunningHub, shell: Shell, ada: httpx.Client, receiver: Receiver) -> None:
    with listening(shell.folder, shell.variables, "--forward", receiver.url, "--secret", "s3cret") as listener:
        webhook = begun(listener, ada)
        assert (webhook["pull"], webhook["watched"]) == (True, [{"type": "user", "name": "ada"}])
        create_repo(ada, "tiny")
        settle(hub)
        assert listener.line() == "→ repo create ada/tiny #1"
        status, duration = listener.line().rsplit(" ", 1)
        assert (status, duration[-2:]) == ("← 200", "ms")
        receiver.status = 503
        create_commit(ada, "ada/tiny", {"a.txt": b"a"})
        settle(hub)
        assert listener.line() == "→ repo.content update ada/tiny #2"
        assert listener.line().startswith("← 503 "), "a failure is shown, and the cursor advances"
        pulled = ada.get(f"{PATH}/{webhook['id']}/events").json()["events"]
        (logged,) = logs(ada, webhook)[:1]
        assert ada.post(f"{PATH}/{webhook['id']}/replay/{logged['id']}").status_code == 200
        assert listener.line() == "→ repo.content update ada/tiny #3"
        assert listener.stop() == 0
    assert ada.get(PATH).json() == [], "the created webhook was deleted"
    assert [each.body.decode() for each in receiver.received[:2]] == [event["body"] for event in pulled]
    for sent, event in zip(receiver.received[:2], pulled, strict=True):
        headers = {name.lower(): value for name, value in event["headers"].items()}
        varying = {"webhook-timestamp", "webhook-signature"}
        own = {"host", "content-length", "x-webhook-secret"}
        assert {name: value for name, value in sent.headers.items() if name not in own | varying} == {
            name: value for name, value in headers.items() if name not in varying
        }
        assert sent.headers["x-webhook-secret"] == "s3cret"
        assert sent.headers["webhook-signature"].startswith("v1,")
    assert receiver.received[2].headers["webhook-id"] != receiver.received[1].headers["webhook-id"]


def test_receiver_library_accepts_forwarded_events(hub: RunningHub, shell: Shell, ada: httpx.Client) -> None:
    """It checks the secret, the signature and the time."""
    app, handled = WebhooksServer(webhook_secret=SECRET), []

    @app.add_webhook("/train")
    def train(payload: WebhookPayload) -> None:
        handled.append(payload.repo.name)

    hub.clock.advance(time.time() - hub.clock() / SECOND)
    with (
        serve_receiver(app),
        listening(
            shell.folder, shell.variables, "--forward", f"{app.url}/webhooks/train", "--secret", SECRET
        ) as listener,
    ):
        begun(listener, ada)
        create_repo(ada, "tiny")
        settle(hub)
        assert [listener.line(), listener.line()[:5]] == ["→ repo create ada/tiny #1", "← 200"]
    assert handled == ["ada/tiny"]


def test_receiver_that_is_down_is_shown(hub: RunningHub, shell: Shell, ada: httpx.Client) -> None:
    with listening(shell.folder, shell.variables, "--forward", "http://127.0.0.1:1/hook") as listener:
        begun(listener, ada)
        for number in (1, 2):
            create_repo(ada, f"repo{number}")
            settle(hub)
            assert listener.line() == f"→ repo create ada/repo{number} #{number}"
            assert listener.line() == "✕ 127.0.0.1:1 cannot be reached: Connection refused"


def test_listening_resumes_after_the_last_event(hub: RunningHub, shell: Shell, ada: httpx.Client) -> None:
    """Across commands, for a webhook that stays; the first command for an existing webhook begins with new events."""
    with listening(shell.folder, shell.variables, "--keep", "--watch", "user:ada") as listener:
        webhook = begun(listener, ada)
        create_repo(ada, "one")
        settle(hub)
        assert listener.line() == "→ repo create ada/one #1"
        listener.stop()
    create_repo(ada, "two")
    settle(hub)
    with listening(shell.folder, shell.variables, webhook["id"][-6:]) as listener:
        assert listener.line() == "→ repo create ada/two #2"
        assert listener.stop(signal.SIGTERM) == 0
    with listening(shell.folder, shell.variables, webhook["id"]) as listener:
        create_repo(ada, "three")
        settle(hub)
        assert listener.line() == "→ repo create ada/three #3"
    elsewhere = {**shell.variables, "XDG_CONFIG_HOME": str(shell.folder / "other")}
    with listening(shell.folder, elsewhere, webhook["id"]) as listener:
        until(lambda: list((shell.folder / "other" / "hubgate" / "cursors").glob(f"*-{webhook['id']}")))
        until(lambda: _streams(hub) == 1)
        create_repo(ada, "four")
        settle(hub)
        assert listener.line() == "→ repo create ada/four #4"
        refused = shell.run("webhooks", "listen", webhook["id"], XDG_CONFIG_HOME=elsewhere["XDG_CONFIG_HOME"])
        assert (refused.returncode, refused.stdout) == (1, "")
        assert refused.stderr.startswith("error: another `hubgate webhooks listen` is running for this webhook.")


def _streams(hub: RunningHub) -> int:
    async def work(opened: OpenedHub) -> int:
        return opened.live_streams.count

    return hub.call(work)


def test_events_are_filtered_and_payloads_shown(
    hub: RunningHub, shell: Shell, ada: httpx.Client, receiver: Receiver
) -> None:
    options = ("--event", "repo.content", "--print", "--forward", receiver.url)
    with listening(shell.folder, shell.variables, *options) as listener:
        begun(listener, ada)
        create_repo(ada, "tiny")
        create_commit(ada, "ada/tiny", {"a.txt": b"a"})
        settle(hub)
        assert listener.line() == "→ repo.content update ada/tiny #2"
        text = ""
        while not text.endswith("\n}\n"):
            text += f"{listener.line()}\n"
        assert json.loads(text)["repo"]["name"] == "ada/tiny"
        assert listener.line().startswith("← 200")
    assert receiver.kinds == ["repo.content update"]


def test_json_output_has_one_object_per_line(
    hub: RunningHub, shell: Shell, ada: httpx.Client, receiver: Receiver
) -> None:
    with listening(shell.folder, shell.variables, "--json", "--forward", receiver.url) as listener:
        begun(listener, ada)
        create_repo(ada, "tiny")
        settle(hub)
        shown = json.loads(listener.line())
    assert (shown["cursor"], shown["forwarded"]["status"]) == (1, 200)
    assert json.loads(shown["body"])["event"] == {"action": "create", "scope": "repo"}


def test_event_in_progress_is_finished_before_the_command_ends(
    hub: RunningHub, shell: Shell, ada: httpx.Client, receiver: Receiver
) -> None:
    """It is not forwarded again by the next command."""
    receiver.hold()
    with listening(shell.folder, shell.variables, "--keep", "--forward", receiver.url) as listener:
        webhook = begun(listener, ada)
        for name in ("one", "two"):
            create_repo(ada, name)
            settle(hub)
        until(lambda: len(receiver.received) == 1)
        listener.process.send_signal(signal.SIGINT)
        receiver.release(1)
        assert listener.process.wait(60) == 0
        shown = [listener.line(), listener.line()[:5]]
        assert shown == ["→ repo create ada/one #1", "← 200"]
    receiver.stop_holding()
    with listening(shell.folder, shell.variables, webhook["id"], "--forward", receiver.url) as listener:
        assert listener.line() == "→ repo create ada/two #2"


def test_unreachable_hub_is_retried_for_a_while(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cursor = StoredCursor(tmp_path / "cursor", io.BytesIO(b"00000000000000000007"))
    handler = EventHandler(None, None, with_payload=False, as_json=False)
    with Hub("http://127.0.0.1:1", "hf_x", retries=0) as client:
        patience = Patience(give_up_after=0.2, pauses=(0.01, 0.02))
        started = time.monotonic()
        with pytest.raises(Unreachable):
            Listener(client, "w", None, cursor, handler, Interrupts(), patience).run()
    assert time.monotonic() - started >= 0.2
    first, second, third, *_ = capsys.readouterr().err.splitlines()
    assert (first, second, third) == tuple(f"! connection lost, retry in {each}s…" for each in (0.01, 0.02, 0.02))
    assert Patience().give_up_after == 600


def test_skipped_event_is_shown(hub: RunningHub, shell: Shell, ada: httpx.Client) -> None:
    with listening(shell.folder, shell.variables) as listener:
        webhook = begun(listener, ada)
        assert ada.post(f"{PATH}/{webhook['id']}/disable").status_code == 200
        create_repo(ada, "tiny")
        settle(hub)
        assert listener.line() == "– skipped (disabled) #1"  # noqa: RUF001


def test_organizations_webhook_is_created(hub: RunningHub, shell: Shell, ada: httpx.Client) -> None:
    path = "/api/organizations/acme/settings/webhooks"
    with listening(shell.folder, shell.variables, "--org", "acme") as listener:
        assert begun(listener, ada, path)["watched"] == [{"type": "org", "name": "acme"}]
        create_repo(ada, "acme/rows", private=True)
        settle(hub)
        assert listener.line() == "→ repo create acme/rows #1"
        listener.stop()
    assert ada.get(path).json() == []


def test_webhook_of_a_killed_command_is_deleted_by_the_next(shell: Shell, ada: httpx.Client) -> None:
    with listening(shell.folder, shell.variables) as listener:
        abandoned = begun(listener, ada)
        listener.stop(signal.SIGKILL)
    assert len(ada.get(PATH).json()) == 1
    with listening(shell.folder, shell.variables) as listener:
        assert begun(listener, ada)["id"] != abandoned["id"]
        listener.stop()
    assert ada.get(PATH).json() == []


def test_refusals_end_the_command(hub: RunningHub, shell: Shell, ada: httpx.Client) -> None:
    assert shell.refused("webhooks", "listen", "0" * 24).startswith("Webhook not found")
    assert shell.refused("webhooks", "listen", "../../x").startswith("this is not the ID of a webhook.")
    assert "rejected HUBGATE_TOKEN" in shell.refused("webhooks", "listen", "0" * 24, HUBGATE_TOKEN="hf_wrong")
    create_organization(hub, "beta", create_user(hub, "bob"), ada="read")
    assert shell.refused("webhooks", "listen", "0" * 24, "--org", "beta")
    assert shell.refused("webhooks", "listen", "0" * 24, "--keep", status=2)
    assert shell.refused("webhooks", "listen", "--forward", "localhost:7860", status=2)
    with listening(shell.folder, shell.variables) as listener:
        webhook = begun(listener, ada)
        until(lambda: _streams(hub) == 1)
        assert ada.delete(f"{PATH}/{webhook['id']}").status_code == 200
        assert listener.process.wait(60) == 1
        assert listener.errors.splitlines()[1:] == ["error: Webhook not found."]


def test_expired_events_end_the_command(hub: RunningHub, shell: Shell, ada: httpx.Client) -> None:
    """The next command continues with the oldest stored event."""
    with listening(shell.folder, shell.variables, "--keep") as listener:
        webhook = begun(listener, ada)
        create_repo(ada, "one")
        settle(hub)
        listener.line()
        listener.stop()
    create_repo(ada, "two")
    settle(hub)
    hub.clock.advance(31 * 24 * 3600)
    create_repo(ada, "three")

    async def sweep(opened: OpenedHub) -> None:
        await Retention(opened.webhooks, 30).step()

    hub.call(sweep)
    settle(hub)
    said = "events 2 to 2 are no longer stored. Run the command again to continue with event 3."
    assert shell.refused("webhooks", "listen", webhook["id"]) == said
    with listening(shell.folder, shell.variables, webhook["id"]) as listener:
        assert listener.line() == "→ repo create ada/three #3"


def test_listening_survives_a_restart_of_the_hub(shell: Shell, hub: RunningHub, ada: httpx.Client) -> None:
    with listening(shell.folder, shell.variables) as listener:
        webhook = begun(listener, ada)
        until(lambda: _streams(hub) == 1)
        hub.stop()
        listener.wait_for("! connection lost, retry in 1s…")
        with run_hub(hub.settings) as again, api(again, shell.variables["HUBGATE_TOKEN"]) as client:
            create_repo(client, "tiny")
            settle(again)
            assert listener.line() == "→ repo create ada/tiny #1"
            assert "s… resumed, 1 missed follow\n" in listener.errors
            listener.stop()
            assert client.get(f"{PATH}/{webhook['id']}").status_code == 404


def test_last_six_characters_of_an_id_are_enough(shell: Shell, ada: httpx.Client) -> None:
    made = shell.json("webhooks", "create", "--pull", "--watch", "user:ada")
    short = made["id"][-6:]
    assert shell.says("webhooks", "list").splitlines()[1].split()[0] == short
    assert shell.json("webhooks", "get", short)["id"] == made["id"]
    assert shell.json("webhooks", "get", short.upper())["id"] == made["id"]
    assert shell.says("webhooks", "disable", short).startswith(f"✓ {made['id']} is disabled.")
    assert shell.json("webhooks", "enable", short)["status"] == "enabled"
    assert shell.json("webhooks", "update", short, "--domain", "repo")["domains"] == ["repo"]
    assert shell.says("webhooks", "test", short).startswith("✓ Stored")
    (logged,) = shell.json("webhooks", "activity", short)
    assert shell.says("webhooks", "replay", short, logged["id"]).startswith("✓ Stored")
    unknown = "000000" if short != "000000" else "111111"
    said = f"you have no webhook whose ID ends in {unknown}. Try: hubgate webhooks list"
    assert shell.refused("webhooks", "get", unknown) == said
    assert shell.refused("webhooks", "get", short, "--org", "acme").startswith("you have no webhook whose ID ends in")
    assert shell.says("webhooks", "delete", short, "--yes") == f"✓ Deleted {made['id']}.\n"


def test_ambiguous_short_id_is_rejected(hub: RunningHub, shell: Shell, ada: httpx.Client) -> None:
    first = shell.json("webhooks", "create", "--pull", "--watch", "user:ada")["id"]
    second = shell.json("webhooks", "create", "--pull", "--watch", "user:ada")["id"]
    twin = second[:-6] + first[-6:]

    async def rename(opened: OpenedHub) -> None:
        async def unit(tx: Any) -> None:
            await tx.exec("DELETE FROM watches WHERE webhook_id = :id", {"id": second})
            await tx.exec("UPDATE webhooks SET id = :twin WHERE id = :id", {"id": second, "twin": twin})

        await opened.db.write(unit)

    hub.call(rename)
    said = f"2 of your webhooks have an ID that ends in {first[-6:]}. Use the whole ID."
    assert shell.refused("webhooks", "get", first[-6:]) == said
    shown = [line.split()[0] for line in shell.says("webhooks", "list").splitlines()[1:]]
    assert sorted(shown) == sorted([first, twin])
