"""Third-party web apps, each in a separate process on a local address."""

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, expect
from tests.bed.clients import ENVIRONMENTS
from tests.bed.node import CLIENTS, NODE
from tests.bed.people import PASSWORD
from tests.bed.processes import ROOT

PROGRAMS = ROOT / "tests/clients/apps"


@dataclass
class Site:
    """A web app that inherits its socket, so that its address can be registered before it starts."""

    home: Path
    _listener: socket.socket = field(default_factory=lambda: socket.create_server(("127.0.0.1", 0)))
    _process: "subprocess.Popen[bytes] | None" = None

    def __post_init__(self) -> None:
        # The hub has another host name, so that a browser treats the two as different sites.
        self.url = f"http://localhost:{self._listener.getsockname()[1]}"

    def run_python(self, environment: str, program: str, **variables: str) -> None:
        """Run a program in the virtual environment of a lock file in requirements/clients."""
        interpreter = ENVIRONMENTS / environment / "bin/python"
        assert interpreter.exists(), f"{interpreter} is missing: run make setup"
        self._start([interpreter, PROGRAMS / program], self.home, variables)

    def run_node(self, program: str, **variables: str) -> None:
        assert CLIENTS.exists(), f"{CLIENTS} is missing: run make setup"
        self.run_node_text((PROGRAMS / program).read_text(), **variables)

    def run_node_text(self, text: str, **variables: str) -> None:
        # Passed as text: imports resolve relative to a module's folder, and packages are not installed in the checkout.
        self._start([NODE, "--input-type=module", "--eval", text], CLIENTS, variables)

    def _start(self, command: list[str | Path], folder: Path, variables: dict[str, str]) -> None:
        number = self._listener.fileno()
        defaults = {"PATH": os.environ["PATH"], "HOME": str(self.home), "LISTEN_FD": str(number), "SITE": self.url}
        with (self.home / "site.log").open("ab") as log:
            self._process = subprocess.Popen(
                command, cwd=folder, env={**defaults, **variables}, stdout=log, stderr=log, pass_fds=[number]
            )
        # Only the program has the socket now: if it exits, connections are refused instead of hanging.
        self._listener.close()

    def stop(self) -> None:
        self._listener.close()
        if self._process is not None:
            self._process.terminate()
            self._process.wait(20)
            print((self.home / "site.log").read_text())


@contextmanager
def site(home: Path) -> Iterator[Site]:
    home.mkdir()
    found = Site(home)
    try:
        yield found
    finally:
        found.stop()


def sign_in(page: Page, name: str) -> None:
    page.get_by_label("Username or e-mail").fill(name)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()


def decide(page: Page, app: str, decision: str = "Allow") -> None:
    """Press a button on the consent page."""
    expect(page.get_by_role("heading", level=1)).to_have_text(f"{app} wants to use your account")
    page.get_by_role("button", name=decision, exact=True).click()


def json_at(page: Page, address: str) -> Any:
    """Wait until the browser is at an address with this prefix; the JSON that the app shows there."""
    page.wait_for_url(lambda current: current.startswith(address))
    return page.evaluate("JSON.parse(document.body.innerText)")
