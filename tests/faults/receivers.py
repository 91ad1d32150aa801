"""A receiver process that tests kill, and its log of handlers that began, ended and were interrupted."""

import random
import socket
import sqlite3
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import httpx
from tests.bed.lean_http import LeanClient
from tests.bed.receiver_library import SECRET, Script

from hubgate.receiver.testing import signed_delivery

# Every line is appended with a single write, so that a kill leaves only complete lines.
PROGRAM = """
import asyncio, os, random, sys, time
from hubgate.receiver import Request, WebhooksServer

app = WebhooksServer(ack="before", inbox="inbox.db")
log = os.open("ran.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)

def record(word, request):
    os.write(log, f"{word} {request.delivery_id}\\n".encode())

@app.add_webhook
def in_thread(request: Request):
    record("began", request)
    time.sleep(random.random() / 50)
    record("ended", request)

@app.add_webhook
async def on_loop(request: Request):
    record("began", request)
    await asyncio.sleep(random.random() / 50)
    record("ended", request)

if sys.argv[1] == "port":
    app.launch(port=int(sys.argv[2]))
else:
    # On an inherited socket that stays open: connections wait in its backlog while the receiver is down.
    import contextlib, socket, uvicorn
    inherited = socket.socket(fileno=int(sys.argv[2]))
    print("at http://127.0.0.1", *(f"POST http://127.0.0.1{path}" for path in app.addresses), sep="\\n", flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[inherited])
"""
PATHS = ("/webhooks/in_thread", "/webhooks/on_loop")


class Receiver:
    """A receiver on a fixed port. With `keep_socket`, its socket stays open while the receiver is down."""

    def __init__(self, folder: Path, *, keep_socket: bool = False) -> None:
        self.folder = folder
        self.file = folder / "receiver.py"
        self.file.write_text(PROGRAM)
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.port: int = self._socket.getsockname()[1]
        self._keep_socket = keep_socket
        if not keep_socket:
            self._socket.close()
        # How often each delivery was running when the process was killed.
        self.interrupted: Counter[str] = Counter()
        self._process: Script | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        where = ("socket", str(self._socket.fileno())) if self._keep_socket else ("port", str(self.port))
        passed = (self._socket.fileno(),) if self._keep_socket else ()
        self._process = Script(self.file, *where, passed=passed, WEBHOOK_SECRET=SECRET).wait_for(len(PATHS))

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process = None
        self.interrupted.update(self.ids_in_state("running"))

    def stop(self) -> int:
        assert self._process is not None
        process, self._process = self._process, None
        return process.stop()

    def close(self) -> None:
        self._socket.close()
        if self._process is not None:
            self._process.kill()

    def ids_in_state(self, *states: str) -> list[str]:
        if not (self.folder / "inbox.db").exists():
            return []
        db = sqlite3.connect(self.folder / "inbox.db", timeout=30)
        try:
            marks = ", ".join("?" * len(states))
            return [
                row[0] for row in db.execute(f"SELECT delivery_id FROM deliveries WHERE state IN ({marks})", states)
            ]
        except sqlite3.OperationalError:
            # The receiver was killed before it had created the table.
            return []
        finally:
            db.close()

    def count(self, word: str) -> "Counter[str]":
        lines = (self.folder / "ran.log").read_text().splitlines() if (self.folder / "ran.log").exists() else []
        return Counter(line.split()[1] for line in lines if line.startswith(word))

    def check(self, sent: set[str]) -> None:
        """Check that each delivery was processed at least once, and exactly once unless a kill interrupted it."""
        began, ended = self.count("began"), self.count("ended")
        lost = [delivery_id for delivery_id in sent if not ended[delivery_id]]
        assert not lost, f"{len(lost)} of {len(sent)} were never processed to the end"
        repeated = [delivery_id for delivery_id in sent if began[delivery_id] > 1 + self.interrupted[delivery_id]]
        assert not repeated, f"{len(repeated)} ran again without an interruption"
        assert set(began) <= sent


@dataclass
class Sender:
    """Sends deliveries as the hub does, each with the same id until a 2xx response, but with shorter delays."""

    url: str
    clients: int = 4
    acknowledged: set[str] = field(default_factory=set)
    refused: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._stop = threading.Event()
        self._enough = threading.Condition()
        self._threads = [threading.Thread(target=self._run, args=(number,)) for number in range(self.clients)]

    def start(self) -> "Sender":
        for thread in self._threads:
            thread.start()
        return self

    def wait_for(self, more: int, seconds: float = 120.0) -> None:
        with self._enough:
            target = len(self.acknowledged) + more
            assert self._enough.wait_for(lambda: len(self.acknowledged) >= target, seconds), (
                "no delivery was acknowledged"
            )

    def stop(self) -> None:
        """Stop after completing the deliveries in flight."""
        self._stop.set()
        for thread in self._threads:
            thread.join(120)

    def _run(self, number: int) -> None:
        chance = random.Random(number)
        with LeanClient(timeout=60) as client:
            count = 0
            while not self._stop.is_set():
                delivery_id = f"{number}-{count}"
                count += 1
                address = self.url + chance.choice(PATHS)
                self._deliver(client, address, delivery_id)
                # Send the delivery again, as after a lost response.
                if chance.random() < 0.2:
                    self._try(client, address, delivery_id)

    def _deliver(self, client: httpx.Client, address: str, delivery_id: str) -> None:
        while True:
            status = self._try(client, address, delivery_id)
            if status is not None and 200 <= status < 300:
                with self._enough:
                    self.acknowledged.add(delivery_id)
                    self._enough.notify_all()
                return
            time.sleep(0.02)

    def _try(self, client: httpx.Client, address: str, delivery_id: str) -> int | None:
        delivery = signed_delivery("repo.content.update", secret=SECRET, id=delivery_id)
        try:
            response = client.post(address, headers=delivery.headers, content=delivery.body)
        except httpx.TransportError:
            return None
        if response.status_code not in (200, 202, 503):
            self.refused.append(response.status_code)
        return response.status_code
