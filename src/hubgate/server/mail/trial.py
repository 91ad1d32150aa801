"""A test mail, sent at once and only once, so that its sender learns what the mail server answers."""

import asyncio

from hubgate.server.ids import new_id
from hubgate.server.mail import texts
from hubgate.server.mail.message import as_email
from hubgate.server.mail.outbox import Outbox
from hubgate.server.mail.transport import NotSent

# Shorter than for other mail: somebody waits for the page.
LONGEST_SECONDS = 20.0


async def send_test(outbox: Outbox, recipient: str) -> str:
    """Send the mail without the outbox's queue. Returns why it was not sent, or an empty text."""
    now = outbox.clock()
    mail_id = new_id(now)
    mail = as_email(texts.test_of_mail(recipient), mail_id, outbox.sender, outbox.base_url, now)
    try:
        async with asyncio.timeout(LONGEST_SECONDS):
            await outbox.transport(mail_id, mail, recipient)
    except TimeoutError:
        return f"no answer within {LONGEST_SECONDS:.0f} seconds"
    except NotSent as error:
        return str(error)
    return ""
