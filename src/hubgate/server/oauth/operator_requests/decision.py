"""An operator grants or rejects a request; of concurrent decisions one wins. The requester is notified by mail."""

from msgspec import Struct

from hubgate.server.accounts import store as account_store
from hubgate.server.audit.model import Actor
from hubgate.server.errors import Conflict, NotFound
from hubgate.server.mail import texts
from hubgate.server.oauth.apps import privileges
from hubgate.server.oauth.context import OAuth
from hubgate.server.oauth.operator_requests import store
from hubgate.server.oauth.operator_requests.model import EXCHANGE, MAX_SHOWN, OperatorRequest
from hubgate.server.storage.database import Tx


class Requests(Struct, frozen=True):
    pending: list[OperatorRequest]
    decided: list[OperatorRequest]


async def list_all(oauth: OAuth) -> Requests:
    """Pending requests, oldest first, and decided requests, newest first."""

    async def unit(tx: Tx) -> Requests:
        return Requests(await store.pending(tx, MAX_SHOWN), await store.decided(tx, MAX_SHOWN))

    return await oauth.db.read_long(unit)


async def count_pending(oauth: OAuth) -> int:
    return await oauth.db.read(store.count_all_pending)


async def get(oauth: OAuth, request_id: str) -> OperatorRequest:
    found = await store.find(oauth.db, request_id)
    if found is None:
        raise NotFound("Request not found. Its app may have been deleted.")
    return found


async def decide(oauth: OAuth, request: OperatorRequest, granted: bool, actor: Actor) -> None:
    if granted and request.wanted != EXCHANGE:
        privileges.check_extra_scope(oauth, request.wanted)
    now = oauth.clock()

    async def unit(tx: Tx) -> None:
        row = await store.decide(tx, request.id, granted, now)
        if row is None:
            raise Conflict("This request was already decided.")
        if granted and request.wanted == EXCHANGE:
            await privileges.set_exchange_in(tx, request.client_id, True, actor, now)
        elif granted:
            await privileges.grant_scope_in(tx, request.client_id, request.wanted, actor, now)
        requester = await account_store.user(tx, row["asked_by"])
        if requester is not None and requester.email_verified_at is not None:
            link = f"{oauth.base_url}{request.app_path}"
            mail = texts.operator_decision(
                requester.email, request.description, request.app_name, granted, link, needs_plan=request.needs_plan
            )
            await oauth.outbox.add(tx, mail)

    await oauth.db.write(unit)
    oauth.outbox.send_soon()
