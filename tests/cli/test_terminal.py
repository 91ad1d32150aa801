"""What an operator sees on a terminal: log lines as text, and links of commands that start with the hub's address."""

import fcntl
import json
import logging
import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from tests.bed.processes import HUBGATE, HubProcess, environment, hub_process, hubgate, read_terminal

from hubgate.server.log_formats import TextFormatter

DIM, END = r"\x1b\[2m", r"\x1b\[0m"


@pytest.mark.parametrize(
    ("variables", "line"),
    [
        ({"TERM": "xterm"}, rf"{DIM}\d\d:\d\d:\d\d{END} GET    /{{name}} \x1b\[33m404{END} {DIM}\d+ ms{END}"),
        ({"TERM": "xterm", "NO_COLOR": "1"}, r"\d\d:\d\d:\d\d GET    /{name} 404 \d+ ms"),
        ({"HUBGATE_LOG": "json"}, r'{"time":".*","route":"/{name}","status":404,.*}'),
    ],
    ids=["colours", "NO_COLOR", "json"],
)
def test_requests_are_logged_as_short_lines_on_a_terminal(tmp_path: Path, variables: dict[str, str], line: str) -> None:
    here, there = pty.openpty()
    command = [*HUBGATE, "serve", "--port", "0", "--deliver", "off"]
    given = environment(**variables)
    with subprocess.Popen(
        command, cwd=tmp_path, env=given, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=there
    ) as process:
        os.close(there)
        assert process.stdout is not None
        url = process.stdout.readline().decode().split()[-1]
        secret = "hf_" + "s" * 30
        assert httpx.get(f"{url}/nobody?token={secret}").status_code == 404
        process.send_signal(signal.SIGTERM)
        process.stdout.read()
        shown = read_terminal(here).decode()
        assert process.wait(60) == 0
    assert re.search(f"^{line}\r$", shown, re.MULTILINE), shown
    assert secret not in shown


def test_log_is_json_in_a_pipe_and_text_on_request(tmp_path: Path) -> None:
    for setting in ("", "text"):
        with hub_process(tmp_path, "--deliver", "off", HUBGATE_LOG=setting) as hub:
            httpx.get(f"{hub.url}/nobody")
            assert hub.stop() == 0
        last = hub.errors.splitlines()[-1]
        if setting:
            assert re.fullmatch(r"\d\d:\d\d:\d\d GET    /{name} 404 \d+ ms", last)
        else:
            assert json.loads(last)["route"] == "/{name}"
    bad = hubgate("serve", "--log", "xml", cwd=tmp_path)
    assert bad.stderr == "error: HUBGATE_LOG: expected text or json, not 'xml'\n"


def test_text_is_one_line_without_control_characters_or_secrets_and_a_traceback_below() -> None:
    formatter = TextFormatter(colour=False)
    try:
        int("no\x1b[2Jnumber in hf_" + "s" * 30)
    except ValueError:
        failed = sys.exc_info()
    message = "it \x1b[2J failed\n12:00:00 GET / 200 1 ms, Bearer " + "s" * 30
    record = logging.LogRecord("hubgate", logging.ERROR, "", 0, message, (), failed)
    head, *below = formatter.format(record).splitlines()
    assert re.fullmatch(r"\d\d:\d\d:\d\d error it \[2J failed 12:00:00 GET / 200 1 ms, \[hidden\]", head)
    assert below[-1] == "    ValueError: invalid literal for int() with base 10: 'no\\x1b[2Jnumber in [hidden]'"
    assert all(line.startswith("    ") for line in below)


def test_commands_print_links_of_the_running_hub(tmp_path: Path) -> None:
    with hub_process(tmp_path, "--deliver", "off") as hub:
        assert invitation(tmp_path).startswith(f"{hub.url}/")
        # An address that is configured for the command takes precedence.
        assert invitation(tmp_path, HUBGATE_BASE_URL="https://hub.example").startswith("https://hub.example/")
        assert invitation(tmp_path, HUBGATE_PORT="8100").startswith("http://127.0.0.1:8100/")
        assert hub.stop() == 0
    assert invitation(tmp_path).startswith("http://127.0.0.1:8000/")


def test_address_of_a_killed_hub_is_ignored_and_of_a_second_hub_is_not_published(tmp_path: Path) -> None:
    with hub_process(tmp_path, "--deliver", "off") as first:
        second = HubProcess(tmp_path, "--deliver", "off")
        assert invitation(tmp_path).startswith(f"{first.url}/")
        assert second.stop() == 0
        assert invitation(tmp_path).startswith(f"{first.url}/")
        first.kill_all()
    assert (tmp_path / "var/address").read_text() == first.url
    assert invitation(tmp_path).startswith("http://127.0.0.1:8000/")


def test_damaged_address_is_ignored(tmp_path: Path) -> None:
    assert hubgate("migrate", cwd=tmp_path).returncode == 0
    with (tmp_path / "var/address").open("wb") as file:
        file.write(b"javascript:alert(1)")
        file.flush()
        fcntl.flock(file, fcntl.LOCK_EX)
        assert invitation(tmp_path).startswith("http://127.0.0.1:8000/")


def invitation(folder: Path, **variables: str) -> str:
    done = hubgate("admin", "invite", "create", "eve@example.org", "--json", cwd=folder, **variables)
    assert done.returncode == 0, done.stderr
    link: str = json.loads(done.stdout)["link"]
    return link
