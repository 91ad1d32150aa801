"""Metrics about deliveries, whichever processes run: those that deliver, or those that serve the web."""

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
from tests.bed.processes import HUBGATE, environment, free_port, hub_process, until

from hubgate.server.metrics import DELIVERY_GAUGES


@contextmanager
def delivering(folder: Path, address: str) -> Iterator[subprocess.Popen[bytes]]:
    """`hubgate deliver` in a folder, once it runs. It is killed at the end."""
    command = [*HUBGATE, "deliver", "--metrics-listen", address]
    with (
        (folder / "deliver.log").open("ab") as errors,
        subprocess.Popen(command, cwd=folder, env=environment(), stdout=subprocess.PIPE, stderr=errors) as process,
    ):
        try:
            assert process.stdout is not None
            assert b"is running" in process.stdout.readline()
            yield process
        finally:
            process.kill()


def gauges(address: str) -> dict[str, float]:
    lines = httpx.get(f"http://{address}/metrics").text.splitlines()
    values = dict(line.split() for line in lines if line.startswith(tuple(DELIVERY_GAUGES)))
    return {name: float(value) for name, value in values.items()}


def test_killed_processes_do_not_count_as_delivering(tmp_path: Path) -> None:
    address = f"127.0.0.1:{free_port()}"
    with delivering(tmp_path, address) as first, delivering(tmp_path, address) as second:
        until(lambda: set(gauges(address)) == set(DELIVERY_GAUGES))
        assert "Cannot listen for metrics" in (tmp_path / "deliver.log").read_text(), "the first process serves them"
        assert first.poll() is None
        second.send_signal(signal.SIGTERM)
        assert second.wait(60) == 0
    with hub_process(tmp_path, "--deliver", "off", "--metrics-listen", address, new=True) as hub:
        until(lambda: set(gauges(address)) == set(DELIVERY_GAUGES))
        assert gauges(address)["hubgate_delivery_processes"] == 0
        assert hub.stop() == 0
