"""User commands: output for people and for programs, and errors."""

import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import termios
from pathlib import Path
from typing import Any

import pytest
from tests.bed.devices import approve
from tests.bed.hostile import json_response, run_hostile_server
from tests.bed.people import create_organization, create_token, create_user
from tests.bed.processes import HUBGATE, ROOT, environment, hubgate, read_terminal, until
from tests.bed.running_hub import RunningHub

from hubgate.cli.user import progress, qr, sign_in_display

HELP = [
    ["login"],
    ["logout"],
    ["whoami"],
    ["upload"],
    ["download"],
    *(["spaces", name] for name in ("list", "logs", "restart", "pause", "secrets")),
    *(["repos", name] for name in ("create", "list", "delete")),
    *(
        ["webhooks", name]
        for name in (
            *("create", "update", "list", "get", "enable", "disable"),
            *("test", "delete", "activity", "replay", "listen"),
        )
    ),
]


class Shell:
    """The commands of one user."""

    def __init__(self, hub: RunningHub, folder: Path, token: str) -> None:
        self.folder = folder
        self.variables = {
            "HUBGATE_ENDPOINT": hub.url,
            "HUBGATE_TOKEN": token,
            "XDG_CONFIG_HOME": str(folder / "config"),
        }

    def run(self, *arguments: str, stdin: bytes = b"", **variables: str) -> "subprocess.CompletedProcess[str]":
        return hubgate(*arguments, cwd=self.folder, stdin=stdin, **{**self.variables, **variables})

    def says(self, *arguments: str, **variables: str) -> str:
        done = self.run(*arguments, **variables)
        assert (done.returncode, done.stderr) == (0, ""), done
        return done.stdout

    def json(self, *arguments: str) -> Any:
        return json.loads(self.says(*arguments, "--json"))

    def refused(self, *arguments: str, status: int = 1, stdin: bytes = b"", **variables: str) -> str:
        done = self.run(*arguments, stdin=stdin, **variables)
        assert (done.returncode, done.stdout) == (status, ""), done
        assert done.stderr.startswith("error: ")
        assert done.stderr.count("\n") == 1, done.stderr
        return done.stderr.removeprefix("error: ").strip()

    def begun(self, *arguments: str) -> "subprocess.Popen[bytes]":
        """With its input open."""
        variables, quiet = environment(**self.variables), subprocess.DEVNULL
        return subprocess.Popen(
            [*HUBGATE, *arguments], cwd=self.folder, env=variables, stdin=subprocess.PIPE, stdout=quiet
        )

    def on_terminal(self, *arguments: str) -> tuple[int, str]:
        """Exit status and what a person sees."""
        here, there = pty.openpty()
        process = subprocess.Popen(
            [*HUBGATE, *arguments],
            cwd=self.folder,
            env=environment(**self.variables),
            stdin=subprocess.DEVNULL,
            stdout=there,
            stderr=there,
        )
        os.close(there)
        seen = read_terminal(here).decode()
        return process.wait(60), seen


@pytest.fixture
def shell(sqlite_hub: RunningHub, tmp_path: Path) -> Shell:
    ada = create_user(sqlite_hub, "ada")
    create_organization(sqlite_hub, "acme", ada)
    return Shell(sqlite_hub, tmp_path, create_token(sqlite_hub, ada))


def test_whoami_prints_the_signed_in_user(shell: Shell) -> None:
    url = shell.variables["HUBGATE_ENDPOINT"]
    assert shell.says("whoami") == f"ada at {url}\n  acme: admin\n"
    assert shell.json("whoami")["name"] == "ada"
    assert shell.refused("whoami", HUBGATE_TOKEN="") == "not signed in. Run: hubgate login"
    there = shell.refused("whoami", "--endpoint", url, HUBGATE_TOKEN="")
    assert there == f"not signed in. Run: hubgate login --endpoint {url}"
    assert "rejected HUBGATE_TOKEN" in shell.refused("whoami", HUBGATE_TOKEN="hf_wrong")


def test_https_used_for_an_http_hub_is_named(sqlite_hub: RunningHub, tmp_path: Path) -> None:
    host = sqlite_hub.url.removeprefix("http://")
    for command in ("login", "whoami"):
        done = hubgate(command, "--endpoint", f"https://{host}", cwd=tmp_path)
        assert (done.returncode, done.stderr) == (1, f"error: {host} does not use https. Try http://{host}\n")


def test_login_on_a_terminal_shows_a_qr_code_and_opens_the_browser(sqlite_hub: RunningHub, tmp_path: Path) -> None:
    ada, opened = create_user(sqlite_hub, "ada"), tmp_path / "opened"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}\n')
    browser.chmod(0o755)
    here, there = pty.openpty()
    fcntl.ioctl(there, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 100, 0, 0))
    variables = {"XDG_CONFIG_HOME": str(tmp_path), "BROWSER": f"{browser} %s", "TERM": "xterm", "PYTHONUTF8": "1"}
    command = [*HUBGATE, "login", "--endpoint", sqlite_hub.url]
    process = subprocess.Popen(command, env=environment(**variables), stdin=there, stdout=there, stderr=there)
    os.close(there)
    until(opened.exists)
    until(opened.read_text)
    link = opened.read_text().strip()
    address, _, code = link.partition("?user_code=")
    assert address == f"{sqlite_hub.url}/oauth/device"
    approve(sqlite_hub, ada, code, "openid profile")
    shown = read_terminal(here).decode().replace("\r\n", "\n")
    assert process.wait(60) == 0
    matrix = qr.modules(link)
    assert matrix is not None
    assert f"({15} min)\n{qr.drawn(matrix, colour=True)}\nWaiting for you to approve…\n" in shown
    assert shown.endswith("✓ Signed in as ada. Try: hubgate webhooks list\n")


@pytest.mark.parametrize(
    ("variables", "platform", "expected"),
    [
        ({"DISPLAY": ":0"}, "linux", True),
        ({"WAYLAND_DISPLAY": "wayland-0"}, "linux", True),
        ({}, "linux", False),
        ({}, "darwin", True),
        ({"DISPLAY": ":10", "SSH_CONNECTION": "10.0.0.1 1 10.0.0.2 22"}, "linux", False),
        ({"SSH_TTY": "/dev/pts/1"}, "darwin", False),
        ({"SSH_TTY": "/dev/pts/1", "BROWSER": "lynx"}, "linux", True),
    ],
)
def test_browser_opens_only_where_there_is_one(variables: dict[str, str], platform: str, *, expected: bool) -> None:
    assert sign_in_display.has_browser(variables, platform) == expected


def test_login_and_logout(sqlite_hub: RunningHub, tmp_path: Path) -> None:
    ada = create_user(sqlite_hub, "ada")
    variables = {"XDG_CONFIG_HOME": str(tmp_path / "config")}
    process = subprocess.Popen(
        [*HUBGATE, "login", "--endpoint", sqlite_hub.url],
        cwd=tmp_path,
        env=environment(**variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    shown = re.fullmatch(r"Open (\S+) and enter  ([A-Z]{4}-[A-Z]{4})  \(15 min\)\n", line)
    assert shown, line
    assert shown[1] == f"{sqlite_hub.url}/oauth/device"
    approve(sqlite_hub, ada, shown[2], "openid profile")
    out, error = process.communicate(timeout=60)
    assert (process.returncode, out, error) == (0, "✓ Signed in as ada. Try: hubgate webhooks list\n", "")
    # The last hub signed in to is the one that is meant.
    assert hubgate("whoami", cwd=tmp_path, **variables).stdout == f"ada at {sqlite_hub.url}\n"
    assert hubgate("logout", cwd=tmp_path, **variables).stdout == f"✓ Signed out of {sqlite_hub.url}.\n"
    again = hubgate("logout", "--endpoint", sqlite_hub.url, cwd=tmp_path, **variables)
    assert (again.returncode, again.stderr) == (1, f"error: not signed in to {sqlite_hub.url}.\n")


def test_repo_commands(shell: Shell) -> None:
    url = shell.variables["HUBGATE_ENDPOINT"]
    assert shell.says("repos", "list") == "No repos. Try: hubgate repos create --help\n"
    assert shell.says("repos", "create", "tiny", "--private") == f"✓ {url}/ada/tiny\n"
    assert shell.json("repos", "create", "acme/rows", "--type", "dataset")["name"] == "acme/rows"
    head, row = shell.says("repos", "list").splitlines()
    assert head.split() == ["NAME", "TYPE", "VISIBILITY", "CHANGED"]
    assert row.split()[:3] == ["ada/tiny", "model", "private"]
    assert [repo["id"] for repo in shell.json("repos", "list", "--owner", "acme")] == ["acme/rows"]
    assert "already" in shell.refused("repos", "create", "tiny")
    assert not shell.refused("repos", "create", "bad name", "--json").endswith("…")
    assert "Pass --yes" in shell.refused("repos", "delete", "tiny")
    assert shell.says("repos", "delete", "tiny", "--yes") == "✓ Deleted ada/tiny.\n"
    assert "not found" in shell.refused("repos", "delete", "tiny", "--yes").lower()


def test_upload_and_download_commands(shell: Shell) -> None:
    shell.says("repos", "create", "tiny")
    (shell.folder / "in" / "sub").mkdir(parents=True)
    (shell.folder / "in" / "a.txt").write_text("a")
    (shell.folder / "in" / "sub" / "b.bin").write_bytes(b"b" * 100_000)
    said = shell.says("upload", "tiny", "in", "--message", "Two files")
    assert re.fullmatch(r"✓ 2 files in \S+/ada/tiny/commit/[0-9a-f]{40}\n", said)
    assert shell.says("upload", "ada/tiny", "in").startswith("✓ Nothing to do")
    assert shell.json("upload", "tiny", "in/a.txt", "--to", "runs/7.txt")["sent"] == ["runs/7.txt"]
    assert shell.json("upload", "tiny", "in/a.txt", "--to", "runs/")["sent"] == ["runs/a.txt"]
    assert shell.says("download", "tiny") == "✓ tiny\n"
    assert (shell.folder / "tiny" / "sub" / "b.bin").read_bytes() == b"b" * 100_000
    assert shell.says("download", "tiny", "a.txt", "--to", "one") == f"✓ {Path('one/a.txt')}\n"
    shell.says("download", "tiny", "runs", "--to", "some")
    assert sorted(path.name for path in (shell.folder / "some").rglob("*.txt")) == ["7.txt", "a.txt"]
    assert "not found" in shell.refused("upload", "tiny", "absent")
    shell.refused("download", "tiny", "absent.txt")
    assert not list(shell.folder.rglob("absent*"))


def test_upload_leaves_out_the_git_folder_of_the_uploaded_folder_only(shell: Shell) -> None:
    below = shell.folder / ".git/worktrees/model"
    (below / ".git").mkdir(parents=True)
    (below / ".git/config").write_text("[core]")
    (below / "a.txt").write_text("hello")
    shell.says("repos", "create", "tiny")
    assert shell.json("upload", "tiny", str(below))["sent"] == ["a.txt"]


def test_progress_is_shown_only_on_a_terminal(shell: Shell) -> None:
    shell.says("repos", "create", "tiny")
    (shell.folder / "model.bin").write_bytes(os.urandom(3_000_000))
    status, seen = shell.on_terminal("upload", "tiny", "model.bin")
    assert status == 0
    assert re.search(r"\rmodel\.bin █+░* \d+% ", seen), seen
    assert "✓ 1 file in " in seen.splitlines()[-1]
    assert shell.run("download", "tiny").stderr == ""


def test_progress_bar_text() -> None:
    assert progress.format_bar("model.bin", 70, 100, 70, 1.0) == "model.bin ███████░░░ 70% 70 B/s 0s"
    assert progress.format_bar("x", 38_000_000, 152_000_000, 38_000_000, 1.0) == "x ██░░░░░░░░ 25% 38 MB/s 3s"
    assert progress.format_bar("empty", 0, 0, 0, 0.0).startswith("empty ██████████ 100%")


@pytest.mark.parametrize("arguments", HELP, ids=" ".join)
def test_every_command_shows_examples(arguments: list[str], tmp_path: Path) -> None:
    done = hubgate(*arguments, "--help", cwd=tmp_path)
    assert done.returncode == 0
    assert f"examples:\n  hubgate {' '.join(arguments)}" in done.stdout
    assert "--json" in done.stdout
    assert "--endpoint" in done.stdout
    assert ("--org" in done.stdout) is (arguments[0] == "webhooks")


@pytest.mark.parametrize(
    "arguments",
    [
        ["webhooks"],
        ["webhoks"],
        ["webhooks", "lissen"],
        ["webhooks", "listen", "--event", "push"],
        ["webhooks", "listen", "--forward", "localhost:7860"],
        ["webhooks", "create", "--url", "http://x"],
        ["webhooks", "create", "--url", "http://x", "--watch", "acme"],
        ["webhooks", "create", "--url", "http://x", "--pull", "--watch", "org:acme"],
        ["webhooks", "replay", "x"],
        ["webhooks", "create", "--url", "http://x", "--watch", "org:acme", "--secret", ""],
        ["webhooks", "update", "x", "--secret", ""],
        ["webhooks", "activity", "x", "--limit", "0"],
        ["webhooks", "replay", "x", "--since", "yesterday"],
        ["webhooks", "replay", "x", "--since", "999999d"],
        ["webhooks", "replay", "x", "--since", "2h", "--rate", "0"],
        ["webhooks", "replay", "x", "--since", "2h", "--rate", "1e-320"],
        ["webhooks", "replay", "x", "--since", "2h", "--rate", "nan"],
        ["repos", "create", "x", "--type", "thing"],
        ["upload", "x"],
        ["whoami", "--endpoint", "hub.example"],
        ["download", "a/b/c"],
    ],
    ids=" ".join,
)
def test_wrong_usage_is_one_line_and_exit_status_2(shell: Shell, arguments: list[str]) -> None:
    said = shell.refused(*arguments, status=2)
    assert "invalid" not in said
    if arguments == ["webhoks"]:
        assert said == "unknown command 'webhoks'. Did you mean webhooks? Try: hubgate --help"


def test_unreachable_hub_and_invalid_responses_are_one_line(tmp_path: Path) -> None:
    alone = {"XDG_CONFIG_HOME": str(tmp_path), "HUBGATE_TOKEN": "hf_x"}
    for answer in (
        b"\x00\r\n\r\n",
        json_response(200, {"odd": 1}),
        json_response(403, {"error": "two\nlines \x1b[31m"}),
    ):
        with run_hostile_server(answer) as server:
            done = hubgate("whoami", "--endpoint", server.url, cwd=tmp_path, **alone)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
        assert "\x1b" not in done.stderr
    for length, shown in ((900, "x" * 900), (2000, "x" * 999 + "…")):
        with run_hostile_server(json_response(403, {"error": "x" * length})) as server:
            done = hubgate("whoami", "--endpoint", server.url, cwd=tmp_path, **alone)
        assert done.stderr == f"error: {shown}\n"
    gone = hubgate("whoami", "--endpoint", server.url, cwd=tmp_path, **alone)
    host = server.url.removeprefix("http://")
    cure = "Check the address, and that the hub is running."
    assert (gone.returncode, gone.stderr) == (1, f"error: {host} cannot be reached: Connection refused. {cure}\n")
    plain_text = b"HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\nContent-Length: 9\r\n\r\nNot Found"
    for foreign in (b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", plain_text):
        with run_hostile_server(foreign) as server:
            other = hubgate("whoami", "--endpoint", server.url, cwd=tmp_path, **alone).stderr
        assert other.endswith("answered with status 404. Is this the address of a hub?\n")
    unsaid = hubgate("whoami", cwd=tmp_path, HUBGATE_ENDPOINT=server.url, **alone).stderr
    assert unsaid.endswith(" refused. To use another hub: hubgate login --endpoint URL, or set HUBGATE_ENDPOINT\n")


def test_ctrl_c_while_waiting_for_login_exits_quietly(sqlite_hub: RunningHub, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*HUBGATE, "login", "--endpoint", sqlite_hub.url],
        cwd=tmp_path,
        env=environment(XDG_CONFIG_HOME=str(tmp_path)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # Tests run in the background inherit an ignored SIGINT, as a shell's background jobs do.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert (process.returncode, error) == (130, b"")


@pytest.mark.parametrize("shell_name", ["bash", "zsh", "fish"])
def test_completion_is_a_script(shell_name: str, tmp_path: Path) -> None:
    script = hubgate("completion", shell_name, cwd=tmp_path).stdout
    assert "webhooks" in script
    assert "secret-stdin" in script


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        (["hubgate", "web"], ["webhooks"]),
        (["hubgate", "webhooks", "en"], ["enable"]),
        (["hubgate", "webhooks", "create", "--sec"], ["--secret", "--secret-stdin"]),
        (["hubgate", "upload", "--re"], ["--revision"]),
    ],
)
def test_bash_completes(typed: list[str], expected: list[str], tmp_path: Path) -> None:
    (tmp_path / "script").write_text(hubgate("completion", "bash", cwd=tmp_path).stdout)
    words = " ".join(f"'{word}'" for word in typed)
    program = f"source ./script; COMP_WORDS=({words}); COMP_CWORD={len(typed) - 1}; _hubgate; echo ${{COMPREPLY[@]}}"
    done = subprocess.run(["bash", "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.split() == expected


def test_version_is_fast_and_loads_no_client(tmp_path: Path) -> None:
    command = [*HUBGATE[:1], "-X", "importtime", *HUBGATE[1:], "--version"]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=True, cwd=ROOT)
    assert "httpx" not in done.stderr
    assert "hubgate.client" not in done.stderr
