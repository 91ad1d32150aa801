"""Mail about access requests: to the users who review them, and to the requester about the decision.

Mail is queued in the transaction of the change, to users who want it and have a verified address. It is limited by
sender, by recipient and by the pair of both; over a limit no mail is sent, and the home page still lists the request.
"""

from hubgate.server.accounts.model import User
from hubgate.server.hub.context import Repos
from hubgate.server.hub.gating import store
from hubgate.server.hub.gating.model import ACCEPTED, REJECTED, AccessRequest
from hubgate.server.hub.mail_limits import MailLimits
from hubgate.server.hub.repos.model import Repo
from hubgate.server.mail import texts
from hubgate.server.storage.database import Tx

LIMITS = MailLimits.of_subject("access request")
MAX_REVIEWERS = 50


async def notify_reviewers(tx: Tx, repos: Repos, repo: Repo, requester: User) -> None:
    """Queue mail about a new request to the owner of the repo or the admins of its organization. Call
    `repos.outbox.send_soon` after the commit.
    """
    link = f"{repos.base_url}{repo.path}/settings/access"
    # In the order of their ids: concurrent transactions lock the counters of recipients in the same order.
    for recipient in await store.reviewers_to_notify(tx, repo.owner_id, requester.id, MAX_REVIEWERS):
        if await LIMITS.count_in(tx, repos.limiter, requester.id, recipient.user_id):
            await repos.outbox.add(tx, texts.access_requested(recipient.email, repo.full_name, requester.name, link))


async def notify_requester(
    tx: Tx, repos: Repos, repo: Repo, found: AccessRequest, status: str, reviewer_id: str | None
) -> None:
    """Queue mail about a decision to the user who asked. No mail is sent to a user who was granted access without
    asking, or about a repo that is private now, which the user may not know of. Call `repos.outbox.send_soon` after
    the commit.
    """
    if not found.asked or repo.private or status not in (ACCEPTED, REJECTED):
        return
    email = await store.address_to_notify(tx, found.user_id)
    if email is None or not await LIMITS.count_in(tx, repos.limiter, reviewer_id or "", found.user_id):
        return
    link = repos.base_url + repo.path
    await repos.outbox.add(tx, texts.access_decision(email, repo.full_name, status == ACCEPTED, link))
