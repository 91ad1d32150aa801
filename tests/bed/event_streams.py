"""Live streams of webhook events in tests, read as a client reads them."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

STREAM = "text/event-stream"


@dataclass
class EventStream:
    response: httpx.Response
    comments: int = 0
    _lines: Iterator[str] = field(init=False)

    def __post_init__(self) -> None:
        self._lines = self.response.iter_lines()

    def messages(self) -> Iterator[dict[str, Any]]:
        """The objects of the stream. The id of each message is its cursor."""
        fields: dict[str, str] = {}
        for line in self._lines:
            if line.startswith(":"):
                self.comments += 1
            elif line:
                name, _, value = line.partition(": ")
                fields[name] = value
            elif fields:
                found: dict[str, Any] = json.loads(fields["data"])
                assert fields == {"id": str(found["cursor"]), "data": fields["data"]}
                yield found
                fields = {}

    def next(self, count: int = 1) -> list[dict[str, Any]]:
        messages = self.messages()
        return [next(messages) for _ in range(count)]

    def wait_for_comments(self, count: int) -> None:
        """Read this many comments, and nothing else."""
        last = self.comments + count
        while self.comments < last:
            line = next(self._lines)
            self.comments += line.startswith(":")
            assert line in (":", "")

    def rest(self) -> list[dict[str, Any]]:
        """All messages until the hub ends the stream."""
        return list(self.messages())


@contextmanager
def open_stream(client: httpx.Client, path: str, **headers: str) -> Iterator[EventStream]:
    with client.stream("GET", path, headers={"accept": STREAM, **headers}) as response:
        assert response.status_code == 200, response.read()
        assert response.headers["content-type"] == STREAM
        yield EventStream(response)
