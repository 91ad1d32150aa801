"""Third parties' web apps as they run: a process of its own for each, on an address of this machine."""

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
    """The program inherits the socket, so the address is known, and can be registered, before it starts."""

    home: Path
    _listener: socket.socket = field(default_factory=lambda: socket.create_server(("127.0.0.1", 0)))
    _process: "subprocess.Popen[bytes] | None" = None

    def __post_init__(self) -> None:
        # By a name that is not the hub's, so that for a browser they are different sites.
        self.url = f"http://localhost:{self._listener.getsockname()[1]}"

    def run_python(self, environment: str, program: str, **variables: str) -> None:
        """In the environment of one of the locks in requirements/clients."""
        interpreter = ENVIRONMENTS / environment / "bin/python"
        assert interpreter.exists(), f"{interpreter} is missing: run make setup"
        self._start([interpreter, PROGRAMS / program], self.home, variables)

    def run_node(self, program: str, **variables: str) -> None:
        assert CLIENTS.exists(), f"{CLIENTS} is missing: run make setup"
        # As text, because a module is resolved from where it stands, and nothing is installed into the checkout.
        text = (PROGRAMS / program).read_text()
        self._start([NODE, "--input-type=module", "--eval", text], CLIENTS, variables)

    def _start(self, command: list[str | Path], folder: Path, variables: dict[str, str]) -> None:
        number = self._listener.fileno()
        own = {"PATH": os.environ["PATH"], "HOME": str(self.home), "LISTEN_FD": str(number), "SITE": self.url}
        with (self.home / "site.log").open("ab") as log:
            self._process = subprocess.Popen(
                command, cwd=folder, env={**own, **variables}, stdout=log, stderr=log, pass_fds=[number]
            )
        # From now on it is the program's alone: if that ends, the browser is refused rather than kept waiting.
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
    page.get_by_label("Name or e-mail").fill(name)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()


def decide(page: Page, app: str, decision: str = "Allow") -> None:
    """On the consent page."""
    expect(page.get_by_role("heading", level=1)).to_have_text(f"{app} wants to use your account")
    page.get_by_role("button", name=decision, exact=True).click()


def shown(page: Page, address: str) -> Any:
    """The JSON that the app shows once the browser is back at it, at an address that starts so."""
    page.wait_for_url(lambda now: now.startswith(address))
    return page.evaluate("JSON.parse(document.body.innerText)")
