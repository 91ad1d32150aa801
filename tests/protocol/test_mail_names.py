"""Names and addresses that the `email` package would misread cause no extra header, no broken mail and no delay for
others.
"""

import email
import email.policy

import pytest
from tests.bed.people import create_token, create_user, mails_to
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts.organizations import invitations

pytestmark = pytest.mark.one_engine

HEADERS = ["From", "To", "Subject", "Date", "Message-ID", "Auto-Submitted"]

# Encoded words (RFC 2047) with a line break, with invalid bytes, with an unknown charset.
ENCODED = (
    "=?utf-8?q?a=0ABcc:eve@example.org?=",
    "=?utf-8?b?CgpoZWxsbw==?=",
    "=?utf-8?q?=85?= " + "\u0300" * 40,
    "<a@b> " + "é" * 30 + " =?x?q?=FF?=",
)


@pytest.mark.parametrize("name", ENCODED)
def test_encoded_word_in_a_name_is_text(hub: RunningHub, name: str) -> None:
    ada = create_user(hub, "ada")
    create_token(hub, ada, name=name)
    hub.clock.advance(1)
    create_token(hub, ada, name="the next")
    first, second = mails_to(hub, "ada@example.org", 2)
    assert first.keys()[: len(HEADERS)] == HEADERS
    assert str(first["Subject"]) == f"New token: {name.replace('=?', '= ?')}"
    assert first.get_content().startswith("Created ")
    assert second["Subject"] == "New token: the next"


def test_long_foreign_address_stays_on_its_line(hub: RunningHub) -> None:
    address = "aéあ" * 20 + "@" + "éb漢" * 8 + ".org"
    hub.call(lambda opened: invitations.invite_to_hub(opened.accounts, address))
    create_user(hub, "bob", verified=False)
    mails_to(hub, "bob@example.org")
    files = [file.read_bytes() for file in (hub.settings.data_dir / "mail").glob("*.eml")]
    (raw,) = [text for text in files if b"bob@" not in text]
    mail = email.message_from_bytes(raw, policy=email.policy.SMTPUTF8)
    assert mail.keys()[: len(HEADERS)] == HEADERS
    assert f"To: {address}\n".encode() in raw
