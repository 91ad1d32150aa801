"""One message: plain text, one link, the hub's address last."""

from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime

import msgspec

from hubgate.server.clock import SECOND


class Message(msgspec.Struct, frozen=True):
    recipient: str
    subject: str
    # Without the closing line.
    text: str


def as_email(message: Message, mail_id: str, sender: str, base_url: str, now: int) -> EmailMessage:
    """`email` folds and refuses line breaks in headers, so no name can smuggle one in."""
    mail = EmailMessage()
    mail["From"] = sender
    mail["To"] = message.recipient
    mail["Subject"] = " ".join(message.subject.split())
    mail["Date"] = format_datetime(datetime.fromtimestamp(now / SECOND, UTC))
    # The same on every try, so that a mail server can drop a repetition.
    mail["Message-ID"] = f"<{mail_id}@{sender.rpartition('@')[2].rstrip('>')}>"
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content(f"{message.text}\n\n{base_url}\n")
    return mail
