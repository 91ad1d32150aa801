"""Mail to the owner of a Space."""

from hubgate.server.hub.repos import store as repo_store
from hubgate.server.mail import texts
from hubgate.server.spaces.host import leases_store
from hubgate.server.spaces.host.context import HostContext
from hubgate.server.storage.database import Tx


async def notify_failed(tx: Tx, context: HostContext, repo_id: str, reason: str) -> None:
    """Queue mail that a Space is not started again, in the transaction that stores it."""
    repo = await repo_store.by_id(tx, repo_id)
    if repo is None:
        return
    link = f"{context.spaces.base_url}{repo.path}/app"
    for address in await leases_store.owner_addresses(tx, repo_id):
        await context.outbox.add(tx, texts.space_failed(address, repo.full_name, reason, link))
