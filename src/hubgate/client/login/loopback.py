"""A loopback listener that receives the browser's redirect after a sign-in (RFC 8252, section 7.3)."""

import contextlib
import socket
import time
from urllib.parse import urlsplit

from hubgate.client.errors import SignInExpired
from hubgate.client.login.request import has_state

PATH = "/callback"
_MAX_HEAD_BYTES = 16 * 1024
# The time to read one request, so that a slow client does not block the next.
_READ_SECONDS = 2.0
_DONE = "Done. Return to your terminal or notebook; this window can be closed."
_NOT_HERE = "Page not found. This address only receives the result of a sign-in."


class Listener:
    def __init__(self) -> None:
        # The IP address, because the hosts file may map `localhost` to another machine.
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._socket.settimeout(0.2)
        self._closed = False
        self.redirect_uri = f"http://127.0.0.1:{self._socket.getsockname()[1]}{PATH}"

    def wait(self, state: str, seconds: float) -> str:
        """Wait for the request with our state and return its query. Other requests get 404 and are ignored."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not self._closed:
            try:
                connection, _ = self._socket.accept()
            except TimeoutError:
                continue
            except OSError:
                break
            with connection, contextlib.suppress(OSError):
                connection.settimeout(_READ_SECONDS)
                query = _query_of(connection)
                good = query is not None and has_state(query, state)
                connection.sendall(_page("200 OK" if good else "404 Not Found", _DONE if good else _NOT_HERE))
                if good and query is not None:
                    return query
        raise SignInExpired("The sign-in was not completed in time. Try again.")

    def close(self) -> None:
        self._closed = True
        self._socket.close()


def _query_of(connection: socket.socket) -> str | None:
    head, deadline = b"", time.monotonic() + _READ_SECONDS
    while b"\r\n\r\n" not in head:
        piece = connection.recv(4096)
        head += piece
        if not piece or len(head) > _MAX_HEAD_BYTES or time.monotonic() > deadline:
            return None
    words = head.partition(b"\r\n")[0].decode("latin-1").split(" ")
    if len(words) != 3 or words[0] != "GET":
        return None
    try:
        target = urlsplit(words[1])
    except ValueError:
        return None
    return target.query if target.path == PATH else None


def _page(status: str, text: str) -> bytes:
    """A response that echoes nothing of the request, and does not leak the code as a Referer."""
    return (
        f"HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {len(text)}\r\n"
        "Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nX-Content-Type-Options: nosniff\r\n"
        f"Connection: close\r\n\r\n{text}"
    ).encode()
