"""The two ways out: an SMTP server, or a folder of `.eml` files for development."""

import asyncio
import os
import smtplib
import ssl
from collections.abc import Awaitable, Callable
from email.message import EmailMessage
from pathlib import Path
from urllib.parse import unquote, urlsplit

Transport = Callable[[str, EmailMessage], Awaitable[None]]

SMTP_SECONDS = 20.0


class NotSent(Exception):
    """The server was not reached or refused; `permanent` when it said never to try again."""

    def __init__(self, cause: str, *, permanent: bool) -> None:
        super().__init__(cause)
        self.permanent = permanent


def transport_for(smtp_url: str, data_dir: Path) -> Transport:
    return _smtp(smtp_url) if smtp_url else _files(data_dir / "mail")


def _files(folder: Path) -> Transport:
    async def send(mail_id: str, mail: EmailMessage) -> None:
        # Ids are ordered by time, so the folder's order is the order of sending.
        await asyncio.to_thread(_write, folder, mail_id, mail.as_bytes())

    return send


def _write(folder: Path, mail_id: str, content: bytes) -> None:
    """Whole or not at all, and for the hub's own user only: the links in it open accounts."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = folder / f".{mail_id}"
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        draft.rename(folder / f"{mail_id}.eml")
    except OSError as error:
        raise NotSent(str(error), permanent=False) from error


def _smtp(url: str) -> Transport:
    async def send(_: str, mail: EmailMessage) -> None:
        await asyncio.to_thread(_deliver, url, mail)

    return send


def _deliver(url: str, mail: EmailMessage) -> None:
    """`smtp://` uses STARTTLS where the server offers it, `smtps://` TLS from the start."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    try:
        with _connected(parts.scheme, host, parts.port) as server:
            if parts.scheme == "smtp" and server.has_extn("starttls"):
                server.starttls(context=ssl.create_default_context())
                server.ehlo()
            if parts.username:
                server.login(unquote(parts.username), unquote(parts.password or ""))
            server.send_message(mail)
    except smtplib.SMTPRecipientsRefused as error:
        codes = [code for code, _ in error.recipients.values()]
        raise NotSent("the recipient was refused", permanent=all(code >= 500 for code in codes)) from error
    except (OSError, smtplib.SMTPException) as error:
        raise NotSent(str(error), permanent=False) from error


def _connected(scheme: str, host: str, port: int | None) -> smtplib.SMTP:
    if scheme == "smtps":
        context = ssl.create_default_context()
        server: smtplib.SMTP = smtplib.SMTP_SSL(host, port or 465, timeout=SMTP_SECONDS, context=context)
    else:
        server = smtplib.SMTP(host, port or 587, timeout=SMTP_SECONDS)
    server.ehlo()
    return server
