"""A receiver to kill, and its records: which handlers began, which ended, which were interrupted."""

import random
import socket
import sqlite3
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import httpx
from tests.bed.receiver_library import SECRET, Script

from hubgate.receiver.testing import signed_delivery

# Every line is one write at the end of a file, so that a kill leaves whole lines.
PROGRAM = """
import asyncio, os, random, sys, time
from hubgate.receiver import Request, WebhooksServer

app = WebhooksServer(ack="before", inbox="inbox.db")
log = os.open("ran.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)

def note(word, request):
    os.write(log, f"{word} {request.delivery_id}\\n".encode())

@app.add_webhook
def in_thread(request: Request):
    note("began", request)
    time.sleep(random.random() / 50)
    note("ended", request)

@app.add_webhook
async def on_loop(request: Request):
    note("began", request)
    await asyncio.sleep(random.random() / 50)
    note("ended", request)

if sys.argv[1] == "port":
    app.launch(port=int(sys.argv[2]))
else:
    # On a socket that outlives it: who comes while nobody is there waits a moment.
    import contextlib, socket, uvicorn
    held = socket.socket(fileno=int(sys.argv[2]))
    print("at http://127.0.0.1", *(f"POST http://127.0.0.1{path}" for path in app.addresses), sep="\\n", flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[held])
"""
PATHS = ("/webhooks/in_thread", "/webhooks/on_loop")


class Receiver:
    """Always on the same port; with `held`, on a socket that stays open while the receiver is down."""

    def __init__(self, folder: Path, *, held: bool = False) -> None:
        self.folder = folder
        self.file = folder / "receiver.py"
        self.file.write_text(PROGRAM)
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.port: int = self._socket.getsockname()[1]
        self._held = held
        if not held:
            self._socket.close()
        # How often each delivery was running when the process was killed.
        self.cut_short: Counter[str] = Counter()
        self._process: Script | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        where = ("socket", str(self._socket.fileno())) if self._held else ("port", str(self.port))
        passed = (self._socket.fileno(),) if self._held else ()
        self._process = Script(self.file, *where, passed=passed, WEBHOOK_SECRET=SECRET).wait_for(len(PATHS))

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process = None
        self.cut_short.update(self.ids_that_are("running"))

    def stop(self) -> int:
        assert self._process is not None
        process, self._process = self._process, None
        return process.stop()

    def end(self) -> None:
        self._socket.close()
        if self._process is not None:
            self._process.kill()

    def ids_that_are(self, *states: str) -> list[str]:
        if not (self.folder / "inbox.db").exists():
            return []
        db = sqlite3.connect(self.folder / "inbox.db", timeout=30)
        try:
            marks = ", ".join("?" * len(states))
            return [
                row[0] for row in db.execute(f"SELECT delivery_id FROM deliveries WHERE state IN ({marks})", states)
            ]
        except sqlite3.OperationalError:
            # Killed before it had created its table.
            return []
        finally:
            db.close()

    def counted(self, word: str) -> "Counter[str]":
        lines = (self.folder / "ran.log").read_text().splitlines() if (self.folder / "ran.log").exists() else []
        return Counter(line.split()[1] for line in lines if line.startswith(word))

    def check(self, sent: set[str]) -> None:
        """Each ran to its end at least once, and exactly once where no kill interrupted it."""
        began, ended = self.counted("began"), self.counted("ended")
        lost = [one for one in sent if not ended[one]]
        assert not lost, f"{len(lost)} of {len(sent)} never ran to their end"
        twice = [one for one in sent if began[one] > 1 + self.cut_short[one]]
        assert not twice, f"{len(twice)} ran again without having been cut short"
        assert set(began) <= sent


@dataclass
class Sender:
    """Sends as the hub does: the same id until a 2xx answer, only sooner."""

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

    def wait_for(self, more: int, seconds: float = 60.0) -> None:
        with self._enough:
            target = len(self.acknowledged) + more
            assert self._enough.wait_for(lambda: len(self.acknowledged) >= target, seconds), "no delivery came through"

    def stop(self) -> None:
        """Deliveries in flight are completed."""
        self._stop.set()
        for thread in self._threads:
            thread.join(60)

    def _run(self, number: int) -> None:
        chance = random.Random(number)
        with httpx.Client(timeout=20) as client:
            count = 0
            while not self._stop.is_set():
                delivery_id = f"{number}-{count}"
                count += 1
                address = self.url + chance.choice(PATHS)
                self._deliver(client, address, delivery_id)
                # Sent once more, as after a lost answer.
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
            answer = client.post(address, headers=delivery.headers, content=delivery.body)
        except httpx.TransportError:
            return None
        if answer.status_code not in (200, 202, 503):
            self.refused.append(answer.status_code)
        return answer.status_code
