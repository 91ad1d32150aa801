"""A client for tests that send thousands of requests: httpx takes longer for a request than the hub.

It has one connection, no cookies of its own, and follows no redirects.
"""

import json as json_format
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from typing import Any, NamedTuple
from urllib.parse import urlencode

from tests.bed.running_hub import RunningHub

from hubgate.server.http.request import FORM_TYPE


class Answer(NamedTuple):
    status_code: int
    # By lower-case name; values of repeated headers are joined.
    headers: dict[str, str]
    text: str


class LightClient:
    def __init__(self, connection: HTTPConnection) -> None:
        self._connection = connection

    def request(
        self,
        method: str,
        url: str,
        headers: dict[str, str],
        content: bytes | str | None = None,
        json: Any = None,
        data: dict[str, str] | None = None,
    ) -> Answer:
        if json is not None:
            content, headers = json_format.dumps(json), {"content-type": "application/json", **headers}
        elif data is not None:
            content, headers = urlencode(data), {"content-type": FORM_TYPE, **headers}
        body = content.encode() if isinstance(content, str) else content
        self._connection.request(method, url, body, headers)
        response = self._connection.getresponse()
        found: dict[str, str] = {}
        for name, value in response.getheaders():
            key = name.lower()
            found[key] = f"{found[key]}, {value}" if key in found else value
        return Answer(response.status, found, response.read().decode(errors="replace"))


@contextmanager
def light_client(hub: RunningHub) -> Iterator[LightClient]:
    connection = HTTPConnection(*hub.address, timeout=60)
    try:
        yield LightClient(connection)
    finally:
        connection.close()
