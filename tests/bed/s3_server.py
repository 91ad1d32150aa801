"""A real S3-compatible server: versitygw, which stores objects as files.

`make setup` calls `python -m tests.bed.s3_server install` when the lock has changed; `lock` updates the lock.
"""

import contextlib
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.bed.blocking import run_blocking
from tests.bed.go_programs import GoProgram
from tests.bed.processes import free_port, until

from hubgate.server.clock import system_clock
from hubgate.server.objects import location
from hubgate.server.objects.s3.signatures import Signer
from hubgate.server.objects.s3.transport import Pace, Transport

PROGRAM = GoProgram("versitygw", "github.com/versity/versitygw/cmd/versitygw", "v1.7.0")
BUCKET = "hub-tests"
_ACCESS_KEY, _SECRET_KEY = "test-access", "test-secret-key"


@dataclass(frozen=True)
class S3Server:
    endpoint: str

    @property
    def variables(self) -> dict[str, str]:
        """The environment of a hub that uses this server."""
        return {
            "AWS_ACCESS_KEY_ID": _ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": _SECRET_KEY,
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": self.endpoint,
        }

    def create_bucket(self, name: str = BUCKET) -> None:
        async def create() -> None:
            place = location.s3_location(f"s3://{name}", self.variables)
            signer = Signer(location.credentials(self.variables), location.region(self.variables))
            transport = Transport(place, signer, system_clock, Pace())
            try:
                await transport.call("PUT", None, {200})
            finally:
                await transport.close()

        run_blocking(create())


@contextlib.contextmanager
def run_s3_server(folder: Path) -> Iterator[S3Server]:
    """Run a server with an empty bucket. Metadata is in a separate folder: file systems in memory lack attributes."""
    files, metadata = folder / "files", folder / "metadata"
    files.mkdir()
    metadata.mkdir()
    port = free_port()
    command = [str(PROGRAM.path), "--port", f"127.0.0.1:{port}", "--access", _ACCESS_KEY, "--secret", _SECRET_KEY]
    command += ["posix", "--sidecar", str(metadata), str(files)]
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder)
    try:
        until(lambda: process.poll() is not None or _accepts(port))
        assert process.poll() is None, (folder / "server.log").read_text()
        server = S3Server(f"http://127.0.0.1:{port}")
        server.create_bucket()
        yield server
    finally:
        process.kill()
        process.wait()


def _accepts(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


if __name__ == "__main__":
    {"install": PROGRAM.install, "lock": PROGRAM.lock}[sys.argv[1]]()
