"""What a hostile program behind a tunnel can make a web process buffer: one message of the server's largest size."""

import contextlib
import socket as sockets
import struct
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.bed.engines import SqliteEngine
from tests.bed.memory import resident_memory
from tests.bed.processes import HubProcess, hub_process, until
from tests.bed.tunnels import open_websocket
from tests.faults.conftest import create_store
from tests.faults.test_tunnels import client_of, token_of_ada

pytestmark = pytest.mark.faults

MIB = 1024 * 1024
# Of a message in fragments, as docs/operating.md says: granian has no option for it.
LARGEST_MESSAGE = {"granian": 64 * MIB, "uvicorn": MIB}
# Buffers of the server and of its allocator.
MARGIN = 24 * MIB
CONNECTIONS = 4


@contextlib.contextmanager
def connection_to(hub: HubProcess, tunnel_id: str, token: str) -> Iterator[sockets.socket]:
    address = httpx.URL(hub.url)
    with sockets.create_connection((address.host, address.port), timeout=60) as connection:
        open_websocket(connection, address, tunnel_id, token)
        yield connection


def send_fragments(connection: sockets.socket, count: int) -> int:
    """Send parts of a message that never ends, 1 MiB each; how many were sent before the hub disconnected."""
    for number in range(count):
        head = struct.pack(">BBQI", 0 if number else 2, 0x80 | 127, MIB, 0)
        try:
            connection.sendall(head + b"x" * MIB)
        except OSError:
            return number
    return count


def socket_buffers() -> int:
    """The largest buffers that the system gives to the two ends of a connection."""
    settings = [Path("/proc/sys/net/ipv4", name).read_text() for name in ("tcp_rmem", "tcp_wmem")]
    return sum(int(setting.split()[2]) for setting in settings)


@pytest.mark.parametrize("server", ["granian", "uvicorn"])
def test_endless_message_is_bounded(sqlite_template: Path, tmp_path: Path, server: str) -> None:
    store = create_store(SqliteEngine(sqlite_template, tmp_path).fresh_url(), tmp_path)
    token, largest = token_of_ada(store), LARGEST_MESSAGE[server]
    with (
        hub_process(store.folder, *store.flags, "--server", server, "--deliver", "off", new=True) as hub,
        client_of(hub, token) as ada,
        contextlib.ExitStack() as connections,
    ):
        tunnel_id = ada.post("/api/tunnels").json()["id"]
        before = resident_memory(hub.process.pid)

        def buffered() -> int:
            return resident_memory(hub.process.pid) - before

        with connection_to(hub, tunnel_id, token) as endless:
            # Sent, not received: the buffers of both sockets may be full when the hub disconnects.
            assert send_fragments(endless, 200) * MIB <= largest + socket_buffers()
        # A new connection of the link replaces the old one with its message, even if the program does not close it.
        for _ in range(CONNECTIONS):
            connection = connections.enter_context(connection_to(hub, tunnel_id, token))
            send_fragments(connection, 60)
        until(lambda: buffered() < largest + MARGIN)
        # The last one is replaced too: nothing is left of it.
        connections.enter_context(connection_to(hub, tunnel_id, token))
        until(lambda: buffered() < MARGIN)
        assert ada.get(f"/api/tunnels/{tunnel_id}").status_code == 200
