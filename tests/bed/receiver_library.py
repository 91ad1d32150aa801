"""The receiver library on a real socket, in this process or in a script."""

import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx
from tests.bed.lean_http import LeanClient
from tests.bed.processes import ROOT, environment

from hubgate.receiver import WebhooksServer
from hubgate.receiver.testing import SignedDelivery

SECRET = "correct horse battery"


@contextmanager
def serve_receiver(app: WebhooksServer) -> Iterator[httpx.Client]:
    app.launch(port=0, prevent_thread_lock=True)
    assert app.url
    try:
        with LeanClient(base_url=app.url, timeout=60) as client:
            yield client
    finally:
        app.close()


def post(client: httpx.Client, path: str, delivery: SignedDelivery) -> httpx.Response:
    return client.post(path, headers=delivery.headers, content=delivery.body)


class Script:
    """A receiver script in a separate process. `addresses` are the webhook addresses it prints."""

    def __init__(
        self,
        file: Path,
        *arguments: str,
        python: str = sys.executable,
        passed: Sequence[int] = (),
        **variables: str,
    ) -> None:
        """`passed` are file descriptors that the script inherits."""
        quiet = {"HUBGATE_NO_EXPERIMENTAL_WARNING": "1", **variables}
        self.errors_file = file.with_suffix(".err")
        with self.errors_file.open("ab") as errors:
            self.process = subprocess.Popen(
                [python, str(file), *arguments],
                cwd=file.parent,
                env=environment(**quiet),
                stdout=subprocess.PIPE,
                stderr=errors,
                pass_fds=passed,
                text=True,
            )
        self.url = ""
        self.addresses: list[str] = []

    def wait_for(self, addresses: int) -> "Script":
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if found := re.search(r"at (http\S+)", line):
                self.url = found[1]
            if found := re.search(r"POST (http\S+)", line):
                self.addresses.append(found[1])
            if self.url and len(self.addresses) >= addresses:
                return self
        raise AssertionError(f"the script exited with {self.process.wait()}: {self.errors}")

    @property
    def errors(self) -> str:
        return self.errors_file.read_text()

    def kill(self) -> None:
        self.process.kill()
        self._end()

    def stop(self, how: signal.Signals = signal.SIGINT) -> int:
        self.process.send_signal(how)
        return self._end()

    def _end(self) -> int:
        status = self.process.wait(60)
        if self.process.stdout is not None:
            self.process.stdout.close()
        return status


@contextmanager
def run_script(file: Path, text: str, *arguments: str, addresses: int = 1, **variables: str) -> Iterator[Script]:
    """Write a script to `file` and start it; the script listens on a random port."""
    file.write_text(RANDOM_PORT + text)
    running = Script(file, *arguments, python=sys.executable, passed=(), **variables)
    try:
        yield running.wait_for(addresses)
    finally:
        if running.process.poll() is None:
            running.kill()


# Scripts call launch() without a port, as users do; parallel tests cannot share the default port 7860.
RANDOM_PORT = """\
from hubgate.receiver import WebhooksServer as _S
_S.launch.__defaults__ = ("127.0.0.1", 0, False, False)
"""
EXAMPLES = ROOT / "examples"
