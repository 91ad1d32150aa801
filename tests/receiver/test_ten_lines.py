"""From an empty environment to a real delivery: the wheel, ten lines, `hubgate login`, a webhook and a change."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.bed.clock import FrozenClock
from tests.bed.devices import approve
from tests.bed.engines import SqliteEngine, settings_for
from tests.bed.people import create_user
from tests.bed.processes import environment
from tests.bed.receiver_library import EXAMPLES, RANDOM_PORT, SECRET, Script
from tests.bed.running_hub import RunningHub
from tests.bed.webhooks import settle

from hubgate.server.clock import system_clock


@pytest.fixture
def hub(sqlite_template: Path, tmp_path: Path) -> Iterator[RunningHub]:
    """Its clock stands at the present: what is more than five minutes off the receiver refuses."""
    url = SqliteEngine(sqlite_template, tmp_path).fresh_url()
    started = RunningHub(settings_for(url, tmp_path, egress_allow="127.0.0.0/8"), FrozenClock(system_clock()))
    started.start()
    try:
        yield started
    finally:
        started.stop()


def test_ten_line_receiver_gets_a_real_delivery(hub: RunningHub, python: Path, tmp_path: Path) -> None:
    ada = create_user(hub, "ada")
    home = tmp_path / "home"
    home.mkdir()
    (home / "app.py").write_text(RANDOM_PORT + (EXAMPLES / "receiver.py").read_text())
    (home / "data.txt").write_text("one row")
    variables = environment(XDG_CONFIG_HOME=str(home / "config"), PYTHONPATH="", HOME=str(home))
    command = python.with_name("hubgate")

    def hubgate(*arguments: str, given: str = "") -> str:
        done = subprocess.run(
            [command, *arguments],
            cwd=home,
            env=variables,
            input=given,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    signing_in = subprocess.Popen(
        [command, "login", "--endpoint", hub.url], cwd=home, env=variables, stdout=subprocess.PIPE, text=True
    )
    assert signing_in.stdout is not None
    shown = re.search(r"enter +([A-Z]{4}-[A-Z]{4})", signing_in.stdout.readline())
    assert shown
    approve(hub, ada, shown[1], "openid profile webhooks manage-repos")
    # While the command waits to ask again.
    receiver = Script(home / "app.py", python=str(python), WEBHOOK_SECRET=SECRET, PYTHONPATH="").wait_for(1)
    try:
        assert "Signed in as ada" in signing_in.communicate(timeout=60)[0]
        watch = ("--url", receiver.addresses[0], "--watch", "user:ada")
        hubgate("webhooks", "create", *watch, "--secret-stdin", given=SECRET)
        hubgate("repos", "create", "corpus", "--type", "dataset")
        hubgate("upload", "ada/corpus", "data.txt", "--type", "dataset")
        settle(hub)
        assert receiver.process.stdout is not None
        assert re.fullmatch(r"training on ada/corpus at [0-9a-f]{40}\n", receiver.process.stdout.readline())
    finally:
        receiver.stop()
    assert receiver.errors == ""
