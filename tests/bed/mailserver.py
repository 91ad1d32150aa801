"""A real SMTP server that can require TLS and a password, reject mail, stall, stop and restart."""

import base64
import email
import email.policy
import ipaddress
import socketserver
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from pathlib import Path
from typing import Literal

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

Tls = Literal["none", "starttls", "smtps"]
LOGIN = ("hub", "p@ss word")


@dataclass(frozen=True)
class Received:
    sender: str
    recipient: str
    raw: bytes
    encrypted: bool
    user: str | None

    @property
    def mail(self) -> EmailMessage:
        return email.message_from_bytes(self.raw, policy=email.policy.default)


@dataclass
class MailServer:
    folder: Path
    tls: Tls = "none"
    port: int = 0
    # Received mail, in order, including mail that is not yet acknowledged or was rejected after the data.
    received: list[Received] = field(default_factory=list)
    # The user and the password of every login attempt.
    logins: list[tuple[str, str]] = field(default_factory=list)
    # Replies to RCPT (by recipient), DATA and QUIT.
    to_recipient: dict[str, int] = field(default_factory=dict)
    to_data: int = 250
    to_quit: int = 221
    # While cleared, the server does not reply to data.
    is_answering: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.is_answering.set()
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        if self.tls != "none":
            self.context.load_cert_chain(_self_signed_certificate(self.folder))

    def start(self) -> None:
        """Start the server, after a stop on the same port."""
        self._server = _Listener(("127.0.0.1", self.port), _Session)
        self._server.mail = self
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        self.is_answering.set()
        self._server.shutdown()
        self._server.server_close()

    def url(self, host: str = "127.0.0.1", login: str = "") -> str:
        return f"{'smtps' if self.tls == 'smtps' else 'smtp'}://{login}{host}:{self.port}"

    def to(self, recipient: str) -> list[Received]:
        return [received for received in self.received if received.recipient == recipient]


@contextmanager
def mail_server(folder: Path, tls: Tls = "none") -> Iterator[MailServer]:
    server = MailServer(folder, tls)
    server.start()
    try:
        yield server
    finally:
        server.stop()


class _Listener(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    mail: MailServer

    def handle_error(self, *_: object) -> None:
        """Ignore clients that disconnect, as tests intend."""


class _Session(socketserver.StreamRequestHandler):
    server: _Listener

    def handle(self) -> None:
        self.mail, self.encrypted = self.server.mail, False
        self.user: str | None = None
        self.sender = self.recipient = ""
        if self.mail.tls == "smtps":
            self._encrypt()
        self._reply(220, "ready")
        while line := self.rfile.readline():
            verb, _, rest = line.decode().strip().partition(" ")
            if not self._answer(verb.upper(), rest):
                break

    def _answer(self, verb: str, rest: str) -> bool:
        match verb:
            case "EHLO":
                offers = ["hub", *(["STARTTLS"] if self.mail.tls == "starttls" and not self.encrypted else [])]
                for offer in offers:
                    self.wfile.write(f"250-{offer}\r\n".encode())
                self._reply(250, "AUTH PLAIN")
            case "STARTTLS":
                self._reply(220, "go")
                self._encrypt()
            case "AUTH":
                user, password = base64.b64decode(rest.split()[-1]).decode().split("\0")[1:]
                self.mail.logins.append((user, password))
                self.user = user if (user, password) == LOGIN else None
                self._reply(235 if self.user else 535, "login")
            case "MAIL":
                self.sender = rest.partition("<")[2].partition(">")[0]
                self._reply(250, "sender")
            case "RCPT":
                self.recipient = rest.partition("<")[2].partition(">")[0]
                self._reply(self.mail.to_recipient.get(self.recipient, 250), "recipient")
            case "DATA":
                self._reply(354, "go on")
                self.mail.received.append(
                    Received(self.sender, self.recipient, self._data(), self.encrypted, self.user)
                )
                self.mail.is_answering.wait()
                self._reply(self.mail.to_data, "taken")
            case "QUIT":
                self._reply(self.mail.to_quit, "bye")
                return False
            case _:
                self._reply(250, "ok")
        return True

    def _data(self) -> bytes:
        lines = []
        while (line := self.rfile.readline()) != b".\r\n":
            lines.append(line.removeprefix(b"."))
        return b"".join(lines)

    def _encrypt(self) -> None:
        self.connection = self.mail.context.wrap_socket(self.connection, server_side=True)
        self.rfile, self.wfile = self.connection.makefile("rb"), self.connection.makefile("wb", 0)
        self.encrypted = True

    def finish(self) -> None:
        super().finish()
        # The listener closes only the accepted socket, not the TLS socket that replaced it.
        self.connection.close()

    def _reply(self, code: int, text: str) -> None:
        self.wfile.write(f"{code} {text}\r\n".encode())


def _self_signed_certificate(folder: Path) -> Path:
    """Create a self-signed certificate, as a local mail server usually has."""
    key = ec.generate_private_key(ec.SECP256R1())
    name, now = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "mail")]), datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path = folder / "mailserver.pem"
    path.write_bytes(private + certificate.public_bytes(serialization.Encoding.PEM))
    return path
