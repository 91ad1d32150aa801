"""A write load that records which writes were acknowledged."""

import threading
from dataclasses import dataclass, field

import httpx
from tests.bed.lean_http import LeanClient


@dataclass
class WriteLoad:
    """Clients that write one name after another. `acknowledged` lists the names that the hub confirmed as saved."""

    urls: list[str]
    prefix: str
    clients: int = 4
    acknowledged: list[str] = field(default_factory=list)
    refused: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._stop = threading.Event()
        self._enough = threading.Condition()
        self._threads = [threading.Thread(target=self._run, args=(number,)) for number in range(self.clients)]

    def start(self) -> "WriteLoad":
        for thread in self._threads:
            thread.start()
        return self

    def wait_for(self, count: int, seconds: float = 120.0) -> None:
        with self._enough:
            assert self._enough.wait_for(lambda: len(self.acknowledged) >= count, seconds), "the load made no progress"

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(120)

    def _run(self, number: int) -> None:
        url = self.urls[number % len(self.urls)]
        count = 0
        with LeanClient(base_url=url, timeout=60) as client:
            while not self._stop.is_set():
                name = f"{self.prefix}-{number}-{count}"
                count += 1
                try:
                    response = client.post("/api/test/write", json={"name": name, "value": "x"})
                except httpx.TransportError:
                    # The hub is down: requests in flight were not acknowledged.
                    self._stop.wait(0.01)
                    continue
                if response.status_code == 200:
                    with self._enough:
                        self.acknowledged.append(name)
                        self._enough.notify_all()
                else:
                    self.refused.append(response.status_code)
