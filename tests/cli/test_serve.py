"""`hubgate serve`: starting, signals, and lost processes."""

import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import httpx
import pytest
from tests.bed.concurrency import run_concurrently
from tests.bed.lean_http import get
from tests.bed.processes import (
    HUBGATE,
    TEST_BUILD,
    HubProcess,
    children_of,
    deliver_process,
    environment,
    free_port,
    hub_process,
    is_alive,
    until,
)

from hubgate.server.metrics import DELIVERY_GAUGES


@pytest.fixture(scope="module")
def earlier_start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder of a hub that was started and stopped."""
    folder = tmp_path_factory.mktemp("earlier")
    assert HubProcess(folder).stop() == 0
    return folder / "var"


@pytest.fixture
def started_before(tmp_path: Path, earlier_start: Path) -> Path:
    """A folder with the data of an earlier start: a new Python process takes long to create the schema."""
    shutil.copytree(earlier_start, tmp_path / "var")
    return tmp_path


def address_of(url: str) -> tuple[str, int]:
    return "127.0.0.1", int(url.rpartition(":")[2])


def healthy(url: str) -> bool:
    try:
        return get(f"{url}/readyz").status_code == 200
    except httpx.TransportError:
        return False


def has_sleeper(url: str) -> bool:
    return get(f"{url}/api/test/sleepers").json() == 1


@pytest.mark.parametrize("server", ["granian", "uvicorn"])
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_serve_starts_responds_and_exits_with_0(tmp_path: Path, server: str, how: signal.Signals) -> None:
    with hub_process(tmp_path, "--server", server, new=True) as hub:
        assert get(f"{hub.url}/healthz").status_code == 200
        assert get(f"{hub.url}/readyz").status_code == 200
        assert hub.stop(how) == 0
    assert (tmp_path / "var/hubgate.db").exists()
    assert (tmp_path / "var/secret.key").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "var").stat().st_mode & 0o777 == 0o700


def test_ctrl_c_in_a_terminal_stops_cleanly(started_before: Path) -> None:
    with hub_process(started_before, new=True) as hub:
        os.killpg(hub.process.pid, signal.SIGINT)
        assert hub.wait() == 0
        assert "Traceback" not in hub.errors
        assert "panic" not in hub.errors


@pytest.mark.parametrize("server", ["granian", "uvicorn"])
def test_requests_in_flight_are_finished(tmp_path: Path, server: str) -> None:
    with hub_process(tmp_path, "--server", server, program=TEST_BUILD) as hub:
        answers: list[int] = []
        slow = f"{hub.url}/api/test/slow?seconds=2"
        asking = threading.Thread(target=lambda: answers.append(get(slow).status_code))
        asking.start()
        until(partial(has_sleeper, hub.url))
        started = time.monotonic()
        assert hub.stop() == 0
        asking.join()
        assert answers == [200]
        assert time.monotonic() - started < 30


def test_endless_requests_do_not_delay_the_stop(tmp_path: Path) -> None:
    """On both servers at once: each waits for some seconds."""
    with ExitStack() as stack:
        hubs = []
        for server in ("granian", "uvicorn"):
            (tmp_path / server).mkdir()
            hub = stack.enter_context(hub_process(tmp_path / server, "--server", server, program=TEST_BUILD))
            endless = stack.enter_context(socket.create_connection(address_of(hub.url)))
            endless.sendall(b"GET /api/test/slow?seconds=60 HTTP/1.1\r\nHost: hub\r\n\r\n")
            until(partial(has_sleeper, hub.url))
            hubs.append(hub)
        started = time.monotonic()
        assert run_concurrently([hub.stop for hub in hubs]) == [0, 0]
        assert time.monotonic() - started < 30
        assert [line for hub in hubs for line in hub.errors.splitlines() if '"level":"error"' in line] == []


def test_an_idle_connection_does_not_delay_the_stop(tmp_path: Path) -> None:
    with hub_process(tmp_path) as hub, socket.create_connection(address_of(hub.url)) as kept_alive:
        kept_alive.sendall(b"GET /healthz HTTP/1.1\r\nHost: hub\r\n\r\n")
        assert kept_alive.recv(65536)
        started = time.monotonic()
        assert hub.stop() == 0
        # The server waits seven seconds for requests in flight.
        assert time.monotonic() - started < 6.5


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_serve_runs_with_closed_standard_streams(tmp_path: Path, closed: str) -> None:
    port = free_port()
    command = " ".join([*HUBGATE, "serve", "--port", str(port), closed])
    process = subprocess.Popen(["sh", "-c", f"exec {command}"], cwd=tmp_path, env=environment())
    try:
        until(lambda: healthy(f"http://127.0.0.1:{port}"))
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_signal_during_the_start_stops_quietly(tmp_path: Path, how: signal.Signals) -> None:
    for pause in (0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8):
        starting = subprocess.Popen(
            [*HUBGATE, "serve", "--port", "0"],
            cwd=tmp_path,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            # Tests run in the background inherit an ignored SIGINT, as a shell's background jobs do.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        until(lambda: _is_ours(starting.pid))
        time.sleep(pause)  # any moment will do: none of them may end badly
        os.killpg(starting.pid, how)
        _, errors = starting.communicate(timeout=60)
        assert "Traceback" not in errors
        assert starting.returncode in (0, 130, -how), errors


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_signal_to_the_process_group_is_not_reported_as_a_broken_git(started_before: Path, how: signal.Signals) -> None:
    program, gate, asked = (started_before / name for name in ("bin/git", "gate", "asked"))
    program.parent.mkdir()
    # Not a shell script: a shell unblocks the signals that git leaves blocked.
    script = f"open({str(asked)!r}, 'w').close(); open({str(gate)!r}).readline(); print('git version 2.47.0')"
    program.write_text(f"#!{sys.executable} -IS\n{script}\n")
    program.chmod(0o755)
    os.mkfifo(gate)
    starting = subprocess.Popen(
        [*HUBGATE, "serve", "--port", "0"],
        cwd=started_before,
        env=environment(PATH=f"{program.parent}:{os.environ['PATH']}"),
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    until(asked.exists)
    os.killpg(starting.pid, how)
    # Opened for both, so that this does not wait for a git that the signal has ended.
    with os.fdopen(os.open(gate, os.O_RDWR), "w") as answer:
        answer.write("go on\n")
        answer.flush()
        _, errors = starting.communicate(timeout=60)
    assert starting.returncode == 0, errors


def _is_ours(pid: int) -> bool:
    """Whether Python has handed over to our main; before that it answers Ctrl-C with a traceback. Our main holds it
    back at first, and later catches the order to stop, which stays so."""
    status = Path(f"/proc/{pid}/status").read_text()
    masks = {name: int(mask, 16) for name, mask in re.findall(r"^(Sig\w+):\s*([0-9a-f]+)$", status, re.MULTILINE)}
    held_back = masks["SigBlk"] & 1 << signal.SIGINT - 1
    return bool(held_back or masks["SigCgt"] & 1 << signal.SIGTERM - 1)


@pytest.mark.parametrize("is_first", [True, False])
def test_child_processes_are_forked(tmp_path: Path, is_first: bool) -> None:
    """Also after the preparation of the database, whose threads have just ended. Only a forked child has a name."""
    if not is_first:
        with hub_process(tmp_path):
            pass
    with hub_process(tmp_path, new=True) as hub:
        names = sorted(Path(f"/proc/{pid}/comm").read_text().strip() for pid in children_of(hub.process.pid))
    assert names == ["hubgate-deliver", "hubgate-web"]


def test_dead_worker_is_replaced(tmp_path: Path) -> None:
    with hub_process(tmp_path) as hub:
        for _ in range(2):
            before = hub.children()
            for victim in before:
                os.kill(victim, signal.SIGKILL)
            until(lambda: len(set(hub.children()) - set(before)) == 2)
            until(lambda: healthy(hub.url))
        assert "Traceback" not in hub.errors
        assert hub.stop() == 0


def test_killing_the_parent_leaves_no_orphan_on_the_port(started_before: Path) -> None:
    with hub_process(started_before, new=True) as hub:
        children = hub.children()
        assert len(children) == 2
        os.kill(hub.process.pid, signal.SIGKILL)
        hub.wait()
        until(lambda: not any(is_alive(child) for child in children))
    with hub_process(started_before, port=address_of(hub.url)[1]) as again:
        assert healthy(again.url)
        assert again.stop() == 0


def test_several_workers_share_the_port(tmp_path: Path) -> None:
    with hub_process(tmp_path, "--workers", "3") as hub:
        assert len(hub.children()) == 4
        assert all(get(f"{hub.url}/healthz").status_code == 200 for _ in range(20))
        assert hub.stop() == 0


def test_background_process_can_run_separately(tmp_path: Path) -> None:
    with hub_process(tmp_path, "--deliver", "off") as hub:
        assert len(hub.children()) == 1
        with deliver_process(tmp_path) as alone:
            until(lambda: _lease_held(tmp_path / "var/hubgate.db"))
            alone.send_signal(signal.SIGTERM)
            assert alone.wait(60) == 0
        assert not _lease_held(tmp_path / "var/hubgate.db"), "a stopped holder gives its leases back"


@pytest.mark.parametrize(
    ("variables", "mail", "links"),
    [
        ({}, "is written to {folder}/var/mail (set HUBGATE_SMTP_URL to send it)", "http://127.0.0.1:8000"),
        (
            {"HUBGATE_SMTP_URL": "smtp://ada:hush@127.0.0.1:2525", "HUBGATE_BASE_URL": "https://hub.example"},
            "is sent through 127.0.0.1:2525",
            "https://hub.example",
        ),
    ],
)
def test_background_process_prints_its_mail_destination(
    tmp_path: Path, variables: dict[str, str], mail: str, links: str
) -> None:
    """On a machine of its own it has settings of its own, and nobody sees at once that they are others."""
    with deliver_process(tmp_path, **variables) as alone:
        assert alone.stdout is not None
        said = [alone.stdout.readline()]
        alone.send_signal(signal.SIGTERM)
        said += alone.stdout.readlines()
        assert alone.wait(60) == 0
    assert [line.decode() for line in said] == [
        "hubgate deliver is running. Ctrl-C stops it.\n",
        f"  mail          {mail.format(folder=tmp_path)}\n",
        f"  links         in mail begin with {links} (HUBGATE_BASE_URL)\n",
    ]


def _lease_held(path: Path) -> bool:
    connection = sqlite3.connect(path)
    try:
        return bool(connection.execute("SELECT count(*) FROM leases").fetchone()[0])
    finally:
        connection.close()


def test_serve_listens_on_ipv6(started_before: Path) -> None:
    port = free_port()
    with hub_process(started_before, "--host", "::1", "--metrics-listen", f"[::1]:{port}", new=True) as hub:
        assert hub.url.startswith("http://[::1]:")
        assert healthy(hub.url)
        assert "hubgate_requests_total" in httpx.get(f"http://[::1]:{port}/metrics").text
        assert hub.stop() == 0


def test_metrics_are_off_by_default_and_sum_all_workers(started_before: Path) -> None:
    port = free_port()
    with hub_process(started_before, "--workers", "2", "--metrics-listen", f"127.0.0.1:{port}", new=True) as hub:
        for _ in range(10):
            get(f"{hub.url}/healthz")
        figures = httpx.get(f"http://127.0.0.1:{port}/metrics").text
        assert _count(figures, "/healthz") == 10
        for name in ("running", "queued", "abandoned", "expired"):
            assert f'hubgate_jobs_{name}{{pool="git"}} 0.0' in figures
        assert get(f"{hub.url}/metrics").status_code == 404
        gauges = {f"{name} 0.0" for name in DELIVERY_GAUGES} - {"hubgate_delivery_processes 0.0"}
        until(lambda: gauges <= set(httpx.get(f"http://127.0.0.1:{port}/metrics").text.splitlines()), every=0.1)
        assert hub.stop() == 0


def test_metrics_can_share_the_public_address(started_before: Path) -> None:
    port = free_port()
    with hub_process(started_before, "--metrics-listen", f"127.0.0.1:{port}", port=port, new=True) as hub:
        assert healthy(hub.url)
        assert _count(get(f"{hub.url}/metrics").text, "/readyz") == 1
        assert hub.stop() == 0


def _count(text: str, route: str) -> float:
    found = re.search(rf'hubgate_requests_total{{[^}}]*route="{route}"[^}}]*}} (\S+)', text)
    assert found, text
    return float(found.group(1))


def test_second_start_loads_no_migration_modules(started_before: Path) -> None:
    """Alembic alone costs half a second."""
    with hub_process(started_before, new=True, PYTHONPROFILEIMPORTTIME="1") as hub:
        assert hub.stop() == 0
        imported = hub.errors
    assert "hubgate.server.worker.supervisor" in imported
    assert "alembic" not in imported
    assert "asyncpg" not in imported
