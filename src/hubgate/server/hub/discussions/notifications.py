"""Mail about discussions, to their participants.

Mail is queued in the transaction of the change, to users who want it, have a verified address and may see the repo. It
is limited by sender, by recipient and by the pair of both; over a limit no mail is sent, and the home page still lists
the discussion.
"""

from collections.abc import Collection

from hubgate.server.hub.context import Repos
from hubgate.server.hub.discussions import store
from hubgate.server.hub.discussions.entries import store as entry_store
from hubgate.server.hub.discussions.model import Discussion, page_path
from hubgate.server.hub.mail_limits import MailLimits
from hubgate.server.hub.repos.model import Repo
from hubgate.server.mail import texts
from hubgate.server.storage.database import Tx

LIMITS = MailLimits.of_subject("discussion")
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
        if not await LIMITS.count_in(tx, repos.limiter, sender_id, recipient.user_id):
            continue
        done = "mentioned you" if recipient.user_id in mentioned else action
        sentence = f"{sender.name} {done}."
        mail = texts.discussion_activity(recipient.email, repo.full_name, found.num, found.title, sentence, link)
        await repos.outbox.add(tx, mail)
