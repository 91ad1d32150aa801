"""Mail about discussions: to mentioned users, to participants, and to the owner of the repo.

Mail is queued in the transaction of the change, to users who want it, have a verified address and may see the repo. It
is limited by sender, by recipient and by the pair of both; over a limit no mail is sent, and the home page still lists
the discussion.
"""

from collections.abc import Collection

from hubgate.server.hub.context import Repos
from hubgate.server.hub.discussions import store
from hubgate.server.hub.discussions.entries import store as entry_store
from hubgate.server.hub.discussions.model import Discussion, page_path
from hubgate.server.hub.repos.model import Repo
from hubgate.server.mail import texts
from hubgate.server.storage.database import Tx
from hubgate.server.throttle.rate_limiter import Limit

_HOUR, _DAY = 60 * 60, 24 * 60 * 60
MAILS_BY_SENDER = Limit("discussion mail sender", 200, _DAY)
MAILS_TO_RECIPIENT = Limit("discussion mail recipient", 30, _HOUR)
MAILS_FROM_SENDER_TO_RECIPIENT = Limit("discussion mail pair", 5, _HOUR)
# Recipients of one change, mentioned users first.
MAX_RECIPIENTS = 50


async def notify(
    tx: Tx, repos: Repos, repo: Repo, found: Discussion, sender_id: str, action: str, mentioned: Collection[str] = ()
) -> None:
    """Queue mail about a change by the user `sender_id`. `action` is a predicate like "commented"; `mentioned` are the
    ids of users whom the change mentions. Call `repos.outbox.send_soon` after the commit.
    """
    recipients = await store.mail_recipients(tx, repo.id, found.num, sender_id)
    recipients.sort(key=lambda recipient: recipient.user_id not in mentioned)
    sender = (await entry_store.labels(tx, [sender_id])).get(sender_id)
    if sender is None:
        return
    link = repos.base_url + page_path(repo, found.num)
    # In the order of their ids: concurrent transactions lock the counters of recipients in the same order.
    for recipient in sorted(recipients[:MAX_RECIPIENTS], key=lambda recipient: recipient.user_id):
        if not await _count(tx, repos, sender_id, recipient.user_id):
            continue
        done = "mentioned you" if recipient.user_id in mentioned else action
        sentence = f"{sender.name} {done}."
        mail = texts.discussion_activity(recipient.email, repo.full_name, found.num, found.title, sentence, link)
        await repos.outbox.add(tx, mail)


async def _count(tx: Tx, repos: Repos, sender_id: str, recipient_id: str) -> bool:
    """Count one mail; False if a limit is reached.

    The narrowest limit is first: mail that it stops must not count towards the other two.
    """
    for limit, subject in (
        (MAILS_FROM_SENDER_TO_RECIPIENT, f"{sender_id} {recipient_id}"),
        (MAILS_BY_SENDER, sender_id),
        (MAILS_TO_RECIPIENT, recipient_id),
    ):
        if not await repos.limiter.count_in(tx, limit, subject):
            return False
    return True
