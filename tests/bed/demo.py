"""`hubgate demo` as a separate process, with what it prints."""

import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.bed.processes import HUBGATE, environment, until


@dataclass
class RunningDemo:
    folder: Path
    process: "subprocess.Popen[bytes]"

    @property
    def printed(self) -> str:
        return (self.folder / "out.txt").read_text()

    @property
    def errors(self) -> str:
        return (self.folder / "err.txt").read_text()

    @property
    def links(self) -> list[str]:
        return re.findall(r"^   (http\S+)$", self.printed, re.MULTILINE)

    @property
    def commands(self) -> list[str]:
        return re.findall(r"^   \$ (.+)$", self.printed, re.MULTILINE)

    def named(self, label: str) -> str:
        found = re.search(rf"^ *{label} +(\S+)$", self.printed, re.MULTILINE)
        assert found, self.printed
        return found[1]

    @property
    def hub(self) -> str:
        return self.named("The demo is ready:")

    def password(self, user: str) -> str:
        found = re.search(rf"{user}, password (\S+)", self.printed)
        assert found, self.printed
        return found[1]

    def run(self, command: str) -> str:
        done = subprocess.run(["bash", "-c", command], env=environment(), capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        return done.stdout

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        self.process.send_signal(how)
        assert self.process.wait(60) == 0, self.errors
        assert "Traceback" not in self.errors

    def wait_for(self, text: str) -> None:
        until(lambda: text in self.printed or self.process.poll() is not None)
        assert text in self.printed, self.errors


@contextmanager
def started(folder: Path, *flags: str) -> Iterator[RunningDemo]:
    with (folder / "out.txt").open("wb") as out, (folder / "err.txt").open("wb") as err:
        command = [*HUBGATE, "demo", "--port", "0", *flags]
        # Settings of another hub in the environment, which the demo ignores.
        other = environment(HUBGATE_REGULAR_UPLOAD_MAX="0", HUBGATE_BASE_URL="https://hub.example")
        process = subprocess.Popen(command, cwd=folder, env=other, stdout=out, stderr=err)
    demo = RunningDemo(folder, process)
    try:
        yield demo
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
