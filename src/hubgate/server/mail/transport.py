"""The two mail transports: an SMTP server, or a folder of `.eml` files for development."""

import asyncio
import contextlib
import os
import smtplib
import ssl
import threading
from collections.abc import Awaitable, Callable
from email.message import EmailMessage
from pathlib import Path
from urllib.parse import SplitResult, unquote, urlsplit

from hubgate.server.setting_values import is_loopback

# Called with the mail's id, the mail and its recipient, which is never read back from a header.
Transport = Callable[[str, EmailMessage, str], Awaitable[None]]

# Timeouts for one response of the server, and for the whole delivery.
RESPONSE_SECONDS = 20.0
DELIVERY_SECONDS = 60.0


class NotSent(Exception):
    """The mail was not sent; `permanent` if a retry would fail too."""

    def __init__(self, cause: str, *, permanent: bool = False) -> None:
        super().__init__(cause)
        self.permanent = permanent


def transport_for(smtp_url: str, data_dir: Path) -> Transport:
    return _smtp(smtp_url) if smtp_url else _files(data_dir / "mail")


def _files(folder: Path) -> Transport:
    async def send(mail_id: str, mail: EmailMessage, _: str) -> None:
        # Ids are ordered by time, so files sort in the order of sending.
        await asyncio.to_thread(_write, folder, mail_id, mail.as_bytes())

    return send


def _write(folder: Path, mail_id: str, content: bytes) -> None:
    """Write a mail atomically, readable by the hub's system user only: its links give access to accounts."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = folder / f".{mail_id}"
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        draft.rename(folder / f"{mail_id}.eml")
    except OSError as error:
        raise NotSent(str(error)) from error


def _smtp(url: str) -> Transport:
    parts = urlsplit(url)

    async def send(_: str, mail: EmailMessage, recipient: str) -> None:
        try:
            async with asyncio.timeout(DELIVERY_SECONDS):
                await _run_in_new_thread(lambda: _deliver(parts, mail, recipient))
        except TimeoutError:
            raise NotSent("the server is too slow") from None

    return send


async def _run_in_new_thread(work: Callable[[], None]) -> None:
    """Run `work` in a new thread, not in the shared pool: a server that hangs must not block password checks or keep a
    command from exiting."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def finish(error: Exception | None) -> None:
        if done.done():
            return
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)

    def run() -> None:
        failure: Exception | None = None
        try:
            work()
        except Exception as error:
            failure = error
        # The loop was closed: nothing awaits the result.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(finish, failure)

    threading.Thread(target=run, name="smtp", daemon=True).start()
    await done


def _deliver(url: SplitResult, mail: EmailMessage, recipient: str) -> None:
    try:
        with contextlib.closing(_connect(url)) as server:
            _authenticate(server, url)
            _send_message(server, mail, recipient)
            # The mail was accepted; a failed QUIT does not matter.
            with contextlib.suppress(smtplib.SMTPException):
                server.quit()
    except (OSError, ValueError, smtplib.SMTPException) as error:
        # ValueError: a host or a password that cannot be encoded.
        raise NotSent(str(error)) from error


def _connect(url: SplitResult) -> smtplib.SMTP:
    host = url.hostname or ""
    if url.scheme == "smtps":
        return smtplib.SMTP_SSL(host, url.port or 465, timeout=RESPONSE_SECONDS, context=_context(host))
    return smtplib.SMTP(host, url.port or 587, timeout=RESPONSE_SECONDS)


def _authenticate(server: smtplib.SMTP, url: SplitResult) -> None:
    """Log in if the URL has a user name, after switching to TLS if possible: `smtp://` uses STARTTLS where the server
    offers it, `smtps://` has used TLS from the start.
    """
    host, encrypted = url.hostname or "", url.scheme == "smtps"
    server.ehlo()
    if not encrypted and server.has_extn("starttls"):
        server.starttls(context=_context(host))
        server.ehlo()
        encrypted = True
    if url.username:
        if not encrypted and not is_loopback(host):
            # A man in the middle may have removed the STARTTLS offer (RFC 3207, section 6).
            raise NotSent("the server offers no encryption, and the password is sent only over an encrypted connection")
        server.login(unquote(url.username), unquote(url.password or ""))


def _context(host: str) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if is_loopback(host):
        # A mail server on this machine often has a self-signed certificate, and loopback traffic cannot be intercepted.
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _send_message(server: smtplib.SMTP, mail: EmailMessage, recipient: str) -> None:
    try:
        # Without `from_addr`, smtplib of Python 3.13 finds no address in `hubgate@[127.0.0.1]` and names no sender.
        server.send_message(mail, from_addr=mail["From"].addresses[0].addr_spec, to_addrs=[recipient])
    except smtplib.SMTPRecipientsRefused as error:
        ((code, _),) = error.recipients.values()
        raise NotSent(f"the recipient was refused with {code}", permanent=code >= 500) from error
    except smtplib.SMTPDataError as error:
        raise NotSent(f"the mail was refused with {error.smtp_code}", permanent=error.smtp_code >= 500) from error
    except smtplib.SMTPNotSupportedError as error:
        raise NotSent("the server supports only ASCII addresses", permanent=True) from error
