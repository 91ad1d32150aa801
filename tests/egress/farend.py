"""Remote servers for tests: raw servers with any behaviour, a scripted resolver, our own certificates."""

import contextlib
import datetime
import ipaddress
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from hubgate.server.egress.addresses import Address

Behaviour = Callable[[socket.socket], None]


@dataclass
class Server:
    """Runs `behave` for each connection in its own thread, and records the requests."""

    behave: Behaviour
    address: str = "127.0.0.1"
    tls: ssl.SSLContext | None = None
    connections: int = 0
    names: list[str | None] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._listener = socket.create_server((self.address, 0))
        self.port = self._listener.getsockname()[1]
        self._open: list[socket.socket] = []
        if self.tls is not None:
            self.tls.sni_callback = lambda _, name, __: self.names.append(name)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                peer, _ = self._listener.accept()
                self.connections += 1
                self._open.append(peer)
                threading.Thread(target=self._serve, args=(peer,), daemon=True).start()

    def _serve(self, peer: socket.socket) -> None:
        with contextlib.suppress(OSError):
            if self.tls is not None:
                peer = self.tls.wrap_socket(peer, server_side=True)
            with peer:
                self.behave(peer)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            # Otherwise the thread would continue to wait.
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for peer in self._open:
            with contextlib.suppress(OSError):
                peer.shutdown(socket.SHUT_RDWR)
            peer.close()


@contextlib.contextmanager
def serving(behave: Behaviour, address: str = "127.0.0.1", tls: ssl.SSLContext | None = None) -> Iterator[Server]:
    server = Server(behave, address, tls)
    try:
        yield server
    finally:
        server.close()


def read_request(peer: socket.socket) -> bytes:
    """One request with its body, or b"" when the other side disconnected."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = peer.recv(65536)
        if not more:
            return b""
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    length = next((int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), 0)
    while len(body) < length:
        more = peer.recv(65536)
        if not more:
            return b""
        body += more
    return head + b"\r\n\r\n" + body


def answering(answer: bytes, seen: list[bytes] | None = None) -> Behaviour:
    """The same answer to each request on a persistent connection."""

    def behave(peer: socket.socket) -> None:
        while request := read_request(peer):
            if seen is not None:
                seen.append(request)
            peer.sendall(answer)

    return behave


def tunnel_to(port: int) -> Behaviour:
    """An HTTP proxy that connects every host of a CONNECT request to a port of this machine."""

    def behave(peer: socket.socket) -> None:
        if not read_request(peer):
            return
        with socket.create_connection(("127.0.0.1", port)) as remote:
            peer.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            threading.Thread(target=_copy, args=(remote, peer), daemon=True).start()
            _copy(peer, remote)

    return behave


def _copy(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


def silent(peer: socket.socket) -> None:
    """Reads until the other side disconnects, and answers nothing."""
    while peer.recv(65536):
        continue


@dataclass
class Names:
    """A resolver with scripted answers, used in turn; the last one is repeated."""

    answers: dict[str, list[Sequence[str]]]
    asked: list[str] = field(default_factory=list)

    async def __call__(self, host: str) -> Sequence[Address]:
        self.asked.append(host)
        answers = self.answers.get(host)
        if not answers:
            raise socket.gaierror(socket.EAI_NONAME, "unknown")
        texts = answers.pop(0) if len(answers) > 1 else answers[0]
        return [ipaddress.ip_address(text) for text in texts]


def certificate_for(name: str, folder: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A server's TLS context with a certificate for `name`, and a client's that trusts only that."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "cert.pem").write_bytes(pem + private)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(folder / "cert.pem")
    return server, ssl.create_default_context(cadata=pem.decode())
