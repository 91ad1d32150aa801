"""`hubgate webhooks listen` as a process, whose lines a test reads."""

import contextlib
import os
import re
import signal
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.bed import fork_server
from tests.bed.processes import HUBGATE, environment, until

_TIME = re.compile(r"\d\d:\d\d:\d\d ")


@dataclass
class ListenProcess:
    process: fork_server.WarmProcess
    folder: Path

    @property
    def errors(self) -> str:
        return (self.folder / "listen.log").read_text()

    def line(self) -> str:
        """The next line, without its time."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline().decode().rstrip("\n")
        return _TIME.sub("", line, count=1)

    def wait_for(self, text: str, seconds: float = 30.0) -> None:
        """Wait until standard error contains the text."""
        until(lambda: text in self.errors, seconds)

    def freeze(self) -> None:
        os.kill(self.process.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self.process.pid, signal.SIGCONT)

    def stop(self, how: signal.Signals = signal.SIGINT) -> int:
        self.process.send_signal(how)
        return self.process.wait(30)


@contextlib.contextmanager
def listening(folder: Path, variables: Mapping[str, str], *arguments: str) -> Iterator[ListenProcess]:
    command = [*HUBGATE, "webhooks", "listen", *arguments]
    with (folder / "listen.log").open("wb") as errors:
        process = fork_server.start(command, folder, environment(**variables), errors)
    try:
        yield ListenProcess(process, folder)
    finally:
        process.kill()
        process.wait(30)
        assert process.stdout is not None
        process.stdout.close()
