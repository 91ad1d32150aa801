"""One message: plain text, one link, the hub's address last."""

from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime
from ipaddress import ip_address

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
    text = f"{message.text}\n\n{base_url}\n"
    # Left as it is where it can be, so that a link in a file can be copied whole.
    mail.set_content(text, cte="7bit" if text.isascii() else None)
    return mail


def default_sender(host: str) -> str:
    """For a hub whose operator named none. A bare address stands in brackets (RFC 5321, section 4.1.3)."""
    try:
        address = ip_address(host)
    except ValueError:
        return f"hubgate@{host}"
    return f"hubgate@[{'IPv6:' if address.version == 6 else ''}{address}]"
