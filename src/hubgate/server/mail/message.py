"""A mail message: plain text that ends with the hub's URL."""

from datetime import UTC, datetime
from email.message import EmailMessage
from email.policy import default
from email.utils import format_datetime
from ipaddress import ip_address

import msgspec

from hubgate.server.clock import SECOND


class Message(msgspec.Struct, frozen=True):
    recipient: str
    subject: str
    # Without the closing line, the hub's URL.
    text: str


def as_email(message: Message, mail_id: str, sender: str, base_url: str, now: int) -> EmailMessage:
    """The message as an EmailMessage. `email` rejects line breaks in headers; encoded words are broken up here."""
    # A non-ASCII address is sent unencoded (RFC 6532): a long encoded address would be folded into an invalid header.
    mail = EmailMessage(default.clone(utf8=not message.recipient.isascii()))
    mail["From"] = sender
    mail["To"] = message.recipient
    # An encoded word (RFC 2047) in a name may contain a line break, or bytes that cannot be encoded.
    mail["Subject"] = " ".join(message.subject.split()).replace("=?", "= ?")
    mail["Date"] = format_datetime(datetime.fromtimestamp(now / SECOND, UTC))
    # The same on every attempt, so that a mail server can drop duplicates.
    mail["Message-ID"] = f"<{mail_id}@{sender.rpartition('@')[2].rstrip('>')}>"
    mail["Auto-Submitted"] = "auto-generated"
    text = f"{message.text}\n\n{base_url}\n"
    # Unencoded where possible, so that a link in an .eml file can be copied.
    mail.set_content(text, cte="7bit" if text.isascii() else None)
    return mail


def default_sender(host: str) -> str:
    """The sender address if none is configured. An IP address is put in brackets (RFC 5321, section 4.1.3)."""
    try:
        address = ip_address(host)
    except ValueError:
        return f"hubgate@{host}"
    return f"hubgate@[{'IPv6:' if address.version == 6 else ''}{address}]"
