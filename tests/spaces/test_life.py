"""The life of a Space that runs: pushed, served, replaced, asleep, awake, crashed."""

import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from msgspec.structs import replace
from tests.bed.engines import Engine
from tests.bed.git import repo_url, run_git
from tests.bed.people import api, create_token, create_user
from tests.bed.processes import until
from tests.bed.running_hub import RunningHub
from tests.bed.spaces import find_space, run_spaces_hub
from tests.spaces.life import NAME, PACE, SPACE, add_space, app, log_lines, post, push, running_spaces, until_stage

from hubgate.server.spaces.runner import MIB


@pytest.fixture
def hub(engine: Engine, tmp_path: Path) -> Iterator[RunningHub]:
    with run_spaces_hub(engine, tmp_path) as started:
        yield started


@pytest.fixture
def ada(hub: RunningHub) -> Iterator[httpx.Client]:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as client:
        yield client


def test_push_replaces_an_app_without_a_refused_request(hub: RunningHub, ada: httpx.Client) -> None:
    assert ada.post(f"{SPACE}/secrets", json={"key": "TOKEN", "value": "s3"}).status_code == 404
    space = add_space(ada, {"app.py": app(1)})
    ada.post(f"{SPACE}/secrets", json={"key": "TOKEN", "value": "s3"}).raise_for_status()
    ada.post(f"{SPACE}/variables", json={"key": "COLOR", "value": "blue"}).raise_for_status()
    with running_spaces(hub), hub.client() as anyone:
        until_stage(ada, "RUNNING")
        answer = post(anyone).json()
        assert (answer["version"], answer["path"], answer["received"]) == (1, "/webhooks/x?a=b", "hello")
        assert answer["environment"] == {
            "COLOR": "blue",
            "TOKEN": "s3",
            "SPACE_ID": NAME,
            "SPACE_HOST": f"{hub.url}/hosted/{NAME}".removeprefix("http://"),
            "HF_ENDPOINT": hub.url,
        }
        statuses: list[int] = []
        is_replaced = threading.Event()

        def keep_asking() -> None:
            with hub.client() as client:
                while not is_replaced.is_set():
                    found = post(client)
                    statuses.append(found.status_code)
                    if found.json().get("version") == 2:
                        is_replaced.set()

        asking = threading.Thread(target=keep_asking, daemon=True)
        asking.start()
        sha = push(ada, {"app.py": app(2)})
        assert is_replaced.wait(120)
        asking.join()
        assert set(statuses) == {200}
        assert until_stage(ada, "RUNNING")["sha"] == sha
        until(lambda: "got /webhooks/x?a=b" in log_lines(hub, space, "run"))
        assert "hubgate: built" in log_lines(hub, space, "build")
        until(lambda: (find_space(hub, space).used_memory or 0) > 0)

        # A version that cannot run leaves the one before it in place.
        push(ada, {"app.py": "raise SystemExit(3)"})
        until(lambda: "still serves" in find_space(hub, space).message)
        assert until_stage(ada, "RUNNING")["sha"] == sha
        assert post(anyone).json()["version"] == 2

        ada.post(f"{SPACE}/pause").raise_for_status()
        until(lambda: find_space(hub, space).process is None)
        assert post(anyone).status_code == 503
    assert find_space(hub, space).stage == "PAUSED"


@pytest.mark.one_engine
def test_requests_wait_for_the_next_version_if_the_app_ends_before_it_listens(
    hub: RunningHub, ada: httpx.Client
) -> None:
    space = add_space(ada, {"app.py": app(1)})
    with running_spaces(hub, replace(PACE, start=300)), hub.client() as anyone:
        until_stage(ada, "RUNNING")
        push(ada, {"app.py": "import time; time.sleep(600)"})
        until_stage(ada, "RUNNING_APP_STARTING")
        assert post(anyone, "crash").status_code == 502
        until_stage(ada, "APP_STARTING")
        assert find_space(hub, space).running_version is None
        until(lambda: "hubgate: It ended with exit status 9." in log_lines(hub, space, "run"))
        push(ada, {"app.py": app(3)})
        until_stage(ada, "RUNNING")
        assert post(anyone).json()["version"] == 3


def test_app_sleeps_and_the_next_request_wakes_it(hub: RunningHub, ada: httpx.Client) -> None:
    space = add_space(ada, {"app.py": app()})
    ada.post(f"{SPACE}/sleeptime", json={"seconds": 3600}).raise_for_status()
    with running_spaces(hub), hub.client() as anyone:
        until_stage(ada, "RUNNING")
        hub.clock.advance(3000)
        assert post(anyone).status_code == 200
        hub.clock.advance(3000)
    # Idle time survives a restart of the process.
    with running_spaces(hub), hub.client() as anyone:
        until_stage(ada, "RUNNING")
        hub.clock.advance(601)
        until_stage(ada, "SLEEPING")
        until(lambda: find_space(hub, space).process is None)
        assert post(anyone).json()["version"] == 1
        until_stage(ada, "RUNNING")


def test_app_that_crashes_is_started_again_five_times(hub: RunningHub, ada: httpx.Client) -> None:
    space = add_space(ada, {"app.py": app()})
    with running_spaces(hub), hub.client() as anyone:
        until_stage(ada, "RUNNING")
        for crash in range(1, 6):
            assert post(anyone, "crash").status_code == 502
            until(lambda: find_space(hub, space).failures == crash)
            if crash < 5:
                # Each request waits some seconds until the app serves again.
                until(lambda: post(anyone).status_code == 200)
        until_stage(ada, "RUNTIME_ERROR")
        assert find_space(hub, space).message == "It ended with exit status 9."
        assert post(anyone).status_code == 503
        mails = list((hub.settings.data_dir / "mail").iterdir())
        assert any(f"Space {NAME} has stopped" in mail.read_text() for mail in mails)
        ada.post(f"{SPACE}/restart").raise_for_status()
        until_stage(ada, "RUNNING")


@pytest.mark.one_engine
@pytest.mark.parametrize(
    ("files", "card", "stage", "message"),
    [
        ({}, "", "NO_APP_FILE", "There is no file app.py."),
        (
            {"app.py": ""},
            "app_file: ../x.py\n",
            "CONFIG_ERROR",
            "app_file in the card: A path cannot contain . or ..: '../x.py'.",
        ),
        ({"app.py": ""}, "python_version: 2.7\n", "CONFIG_ERROR", "python_version 2.7 is not installed on this hub."),
        ({"app.py": "import time; time.sleep(600)"}, "", "RUNTIME_ERROR", "The app did not listen on the port in PORT"),
    ],
    ids=["no file", "path", "python", "never listens"],
)
def test_space_that_cannot_run_says_why(
    hub: RunningHub, ada: httpx.Client, files: dict[str, str], card: str, stage: str, message: str
) -> None:
    space = add_space(ada, files, f"---\nsdk: python\n{card}---\n")
    with running_spaces(hub, replace(PACE, start=2)):
        until_stage(ada, stage)
        assert find_space(hub, space).message.startswith(message)
        until(lambda: find_space(hub, space).process is None)


def test_odd_answers_and_headers_do_not_disturb_others(hub: RunningHub, ada: httpx.Client) -> None:
    add_space(ada, {"app.py": app()})
    with running_spaces(hub), hub.client() as anyone:
        until_stage(ada, "RUNNING")
        assert post(anyone, "odd status").status_code == 502
        descriptors = len(list(Path("/proc/self/fd").iterdir()))
        headers = [(b"X-Twice", b"a"), (b"X-Twice", b"b"), (b"x_odd", b"c"), (b"X-Latin", b"caf\xe9")]
        for _ in range(50):
            answer = anyone.post(f"/hosted/{NAME}/webhooks/x", content="hello", headers=headers)
            assert answer.status_code == 200
        received = {name.lower(): value for name, value in answer.json()["headers"].items()}
        assert received["x-twice"] == "a, b"
        # Headers that some servers reject, or read differently, are left out.
        assert not {"x_odd", "x-latin"} & set(received)
        # The app would keep every connection open.
        assert len(list(Path("/proc/self/fd").iterdir())) < descriptors + 20


@pytest.mark.one_engine
def test_files_of_a_space_are_not_on_the_disk_while_it_is_built(engine: Engine, tmp_path: Path) -> None:
    """Many Spaces may wait for their builds, each with files as large as its work folder."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        index = f"http://127.0.0.1:{silent.getsockname()[1]}/simple"
        with run_spaces_hub(engine, tmp_path / "hub", spaces_index=index) as hub:
            token = create_token(hub, create_user(hub, "ada"))
            with api(hub, token) as ada, running_spaces(hub):
                space = add_space(ada, {"app.py": app(), "requirements.txt": "anything"})
                until(lambda: any("building" in line for line in log_lines(hub, space, "build")))
                assert list((hub.settings.data_dir / "spaces" / "hosted").glob("*/*.tar")) == []


@pytest.mark.one_engine
@pytest.mark.parametrize("limit", [{"spaces_disk": 64 * MIB}, {"spaces_memory": 128 * MIB}])
def test_files_that_are_larger_than_the_work_folder_fail_the_build(
    engine: Engine, tmp_path: Path, limit: dict[str, int]
) -> None:
    """A tree may name the same blob many times: a small push becomes a large archive."""
    with run_spaces_hub(engine, tmp_path / "hub", None, **{name: str(size) for name, size in limit.items()}) as hub:
        token = create_token(hub, create_user(hub, "ada"))
        with api(hub, token) as ada, running_spaces(hub):
            space = add_space(ada, {"app.py": app()})
            until_stage(ada, "RUNNING")
            clone = tmp_path / "clone"
            assert git(tmp_path, "clone", "--quiet", repo_url(hub.url, f"spaces/{NAME}", token), str(clone))
            (clone / "zeros").write_bytes(bytes(4 * MIB))
            blob = git(clone, "hash-object", "-w", "zeros")
            for number in range(20):
                git(clone, "update-index", "--add", "--cacheinfo", f"100644,{blob},copy-{number}")
            git(clone, "commit", "--quiet", "-m", "Many copies")
            git(clone, "push", "--quiet", "origin", "HEAD:main")
            until(lambda: "larger than 64 MiB" in find_space(hub, space).message)
            assert post(ada).status_code == 200
            assert list((hub.settings.data_dir / "spaces" / "hosted").glob("*/*.tar")) == []


def git(folder: Path, *arguments: str) -> str:
    done = run_git(folder, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip() or "done"


def test_deleted_space_stops(hub: RunningHub, ada: httpx.Client) -> None:
    add_space(ada, {"app.py": app()})
    with running_spaces(hub):
        until_stage(ada, "RUNNING")
        sockets = hub.settings.data_dir / "spaces" / "sockets"
        assert len(list(sockets.iterdir())) == 1
        deleted = ada.request("DELETE", "/api/repos/delete", json={"type": "space", "name": NAME})
        assert deleted.status_code == 200
        until(lambda: not any(sockets.iterdir()))


@pytest.mark.one_engine
def test_app_sleeps_although_the_version_after_it_cannot_run(hub: RunningHub, ada: httpx.Client) -> None:
    space = add_space(ada, {"app.py": app()})
    with running_spaces(hub):
        until_stage(ada, "RUNNING")
        push(ada, {"app.py": "raise SystemExit(3)"})
        until(lambda: "still serves" in find_space(hub, space).message)
        hub.clock.advance(49 * 3600)
        until_stage(ada, "SLEEPING")


@pytest.mark.one_engine
def test_push_to_a_sleeping_space_counts_idle_time_from_the_push(hub: RunningHub, ada: httpx.Client) -> None:
    space = add_space(ada, {"app.py": app(1)})
    with running_spaces(hub):
        until_stage(ada, "RUNNING")
        hub.clock.advance(49 * 3600)
        until_stage(ada, "SLEEPING")
        until(lambda: find_space(hub, space).process is None)
        push(ada, {"app.py": app(2)})
        until_stage(ada, "RUNNING")
        time.sleep(10 * PACE.poll)
        assert find_space(hub, space).stage == "RUNNING"
        hub.clock.advance(49 * 3600)
        until_stage(ada, "SLEEPING")


@pytest.mark.one_engine
def test_crashes_are_counted_for_each_version(hub: RunningHub, ada: httpx.Client) -> None:
    space = add_space(ada, {"app.py": app(1)})
    with running_spaces(hub), hub.client() as anyone:
        until_stage(ada, "RUNNING")
        for crash in range(1, 5):
            assert post(anyone, "crash").status_code == 502
            until(lambda: find_space(hub, space).failures == crash)
            assert post(anyone).status_code == 200
        push(ada, {"app.py": app(2)})
        until(lambda: post(anyone).json().get("version") == 2)
        assert post(anyone, "crash").status_code == 502
        until(lambda: find_space(hub, space).failures > 0)
        assert post(anyone).status_code == 200


@pytest.mark.one_engine
def test_crashes_before_a_stable_time_are_not_counted_after_a_restart(hub: RunningHub, ada: httpx.Client) -> None:
    space = add_space(ada, {"app.py": app(1)})
    with running_spaces(hub, replace(PACE, stable=1)), hub.client() as anyone:
        until_stage(ada, "RUNNING")
        assert post(anyone, "crash").status_code == 502
        until(lambda: find_space(hub, space).failures == 1)
        assert post(anyone).status_code == 200
        until(lambda: find_space(hub, space).failures == 0)
