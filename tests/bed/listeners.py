"""`hubgate webhooks listen` as a process, whose lines a test reads."""

import contextlib
import os
import queue
import re
import signal
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.bed import fork_server
from tests.bed.processes import HUBGATE, environment, until

_TIME = re.compile(r"\d\d:\d\d:\d\d ")


@dataclass
class ListenProcess:
    process: fork_server.WarmProcess
    folder: Path
    _lines: "queue.Queue[str]" = field(default_factory=queue.Queue)

    def __post_init__(self) -> None:
        # Read at once: a full pipe would stop the command.
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line.decode().rstrip("\n"))

    @property
    def errors(self) -> str:
        return (self.folder / "listen.log").read_text()

    def line(self) -> str:
        """The next line, without its time."""
        return _TIME.sub("", self._lines.get(timeout=60), count=1)

    def wait_for(self, text: str, seconds: float = 60.0) -> None:
        """Wait until standard error contains the text."""
        until(lambda: text in self.errors, seconds)

    def freeze(self) -> None:
        os.kill(self.process.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self.process.pid, signal.SIGCONT)

    def close(self) -> None:
        self.process.kill()
        self.process.wait(60)
        self._reading.join(60)
        assert self.process.stdout is not None
        self.process.stdout.close()

    def stop(self, how: signal.Signals = signal.SIGINT) -> int:
        self.process.send_signal(how)
        return self.process.wait(60)


@contextlib.contextmanager
def listening(folder: Path, variables: Mapping[str, str], *arguments: str) -> Iterator[ListenProcess]:
    command = [*HUBGATE, "webhooks", "listen", *arguments]
    with (folder / "listen.log").open("wb") as errors:
        process = fork_server.start(command, folder, environment(**variables), errors)
    listener = ListenProcess(process, folder)
    try:
        yield listener
    finally:
        listener.close()
