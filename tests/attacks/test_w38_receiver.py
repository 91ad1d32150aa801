"""W38: without the secret no body is read, and no malformed signature causes a 500."""

import socket
from collections.abc import Iterator

import pytest
from tests.bed.receiver_library import SECRET, serve_receiver

from hubgate.receiver import WebhookPayload, WebhooksServer
from hubgate.receiver.body import MAX_BYTES

ran: list[str] = []


@pytest.fixture(scope="module")
def where() -> Iterator[tuple[str, int]]:
    app = WebhooksServer(webhook_secret=SECRET)

    @app.add_webhook
    def heard(payload: WebhookPayload) -> None:
        ran.append(payload.kind)

    with serve_receiver(app) as client:
        yield client.base_url.host, client.base_url.port or 0


def status_of(where: tuple[str, int], *lines: bytes, body: bytes = b"", length: int | None = None) -> int:
    """The status of the answer to a request of exactly these bytes."""
    size = b"Content-Length: %d" % (len(body) if length is None else length)
    head = b"\r\n".join([b"POST /webhooks/heard HTTP/1.1", b"Host: x", b"Connection: close", size, *lines, b"", b""])
    with socket.create_connection(where, timeout=60) as connection:
        connection.sendall(head + body)
        answer = b""
        while b"\r\n\r\n" not in answer:
            piece = connection.recv(65536)
            assert piece, "hung up without an answer"
            answer += piece
    return int(answer.split()[1])


BAD = [b"", b"{", b"\xff\xfe\x00", b"[" * 200_000, b'{"event": ' + b"9" * 50_000 + b"}", b"\x00" * 1000]


@pytest.mark.parametrize("body", BAD, ids=["empty", "half", "binary", "deep", "digits", "zeros"])
def test_w38_every_body_without_a_signature_is_answered_alike(where: tuple[str, int], body: bytes) -> None:
    """The body is not read."""
    assert status_of(where, body=body) == 401
    assert status_of(where, b"X-Webhook-Secret: wrong", body=body) == 403
    assert ran == []


def test_w38_answer_is_sent_before_the_body_is_read(where: tuple[str, int]) -> None:
    """A stranger cannot make the receiver wait for, or buffer, an announced body."""
    assert status_of(where, length=10**15) == 401
    assert status_of(where, b"X-Webhook-Secret: wrong", length=MAX_BYTES) == 403
    assert status_of(where, b"X-Webhook-Secret: " + SECRET.encode(), length=10**15) == 413
    # Without the "100 Continue" that the request asks for.
    assert status_of(where, b"Expect: 100-continue", length=5) == 401


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"v1",
        b"v1,",
        b"v1,=",
        b"v1,A",
        b"v1,AA=A",
        b"v1,\xf0\x9f\x98\x80",
        b"v1a,QUJD",
        b"v0,QUJD",
        b"v1;QUJD",
        b",,,,",
        b"v1,QUJD," * 3,
        b"v1,QUJD " * 1000,
        b"v1, QUJD",
    ],
)
def test_w38_malformed_signature_is_rejected(where: tuple[str, int], value: bytes) -> None:
    given = (b"webhook-id: 1", b"webhook-timestamp: 1", b"webhook-signature: " + value)
    assert status_of(where, *given, body=b"{}") == 401
    assert ran == []


@pytest.mark.parametrize("value", [b"", b"x", b"-5", b"1e5", b"\xff", b"9" * 400, b"0x10", b"1 2"])
def test_w38_malformed_time_or_id_is_rejected(where: tuple[str, int], value: bytes) -> None:
    signature = b"webhook-signature: v1,QUJD"
    assert status_of(where, b"webhook-id: 1", b"webhook-timestamp: " + value, signature) == 401
    assert status_of(where, b"webhook-timestamp: 1", signature) == 401
    assert ran == []
