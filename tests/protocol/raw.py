"""Requests that no client library would send."""

import socket
import time


def raw_request(
    address: tuple[str, int], request: bytes, dripping: bytes = b"", *, pause: float = 0.0, seconds: float = 60.0
) -> bytes:
    """Send exactly these bytes, then others one by one with pauses, and read until the server closes or answers."""
    with socket.create_connection(address, timeout=seconds) as connection:
        connection.sendall(request)
        for position in range(len(dripping)):
            try:
                connection.sendall(dripping[position : position + 1])
            except (BrokenPipeError, ConnectionResetError):
                break
            time.sleep(pause)
        return _read_answer(connection)


def _read_answer(connection: socket.socket) -> bytes:
    received = b""
    while True:
        try:
            part = connection.recv(65536)
        except ConnectionResetError:
            return received
        received += part
        if not part or _complete(received):
            return received


def _complete(received: bytes) -> bool:
    head, separator, body = received.partition(b"\r\n\r\n")
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return bool(separator) and len(body) >= int(line.split(b":")[1])
    return False


def status_of(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/1.1 ") else 0
