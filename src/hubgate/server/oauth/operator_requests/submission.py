"""Submits a request to the operators, and notifies each of them by mail, up to an hourly limit."""

from collections.abc import Sequence

from hubgate.server.accounts import store as account_store
from hubgate.server.accounts.field_checks import FieldChecks
from hubgate.server.accounts.limits import OPERATOR_REQUEST_MAILS
from hubgate.server.accounts.model import User
from hubgate.server.audit.model import Actor
from hubgate.server.errors import FieldErrors, Unprocessable
from hubgate.server.ids import new_id
from hubgate.server.mail import texts
from hubgate.server.oauth.apps.management import lock_app
from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.context import OAuth
from hubgate.server.oauth.operator_requests import store
from hubgate.server.oauth.operator_requests.model import (
    EXCHANGE,
    LONGEST_REASON,
    MAX_PENDING_PER_APP,
    MAX_SHOWN,
    OperatorRequest,
    describe,
)
from hubgate.server.scopes import SCOPE_NAMES
from hubgate.server.setting_values import is_scope_name
from hubgate.server.storage.database import Tx
from hubgate.server.throttle.rate_limiter import Limit

# Every operator has to read each request.
REQUESTS_OF_USER = Limit("operator request", 10, 60 * 60, "Too many requests. Wait {duration}.")
LIST_PATH = "/operator/requests"


async def submit(oauth: OAuth, app: App, wanted: str, reason: str, user: User, actor: Actor) -> None:
    """Submit a request. `wanted` is EXCHANGE or a scope name, which the operator need not have defined yet. The actor
    must still be the app's owner.
    """
    checks = FieldChecks()
    reason = checks.check("reason", _reason, reason)
    if problem := _problem(app, wanted):
        checks.add_error("wanted", problem)
    checks.raise_errors()
    await oauth.limiter.take(REQUESTS_OF_USER, user.id)
    now, link = oauth.clock(), f"{oauth.base_url}{LIST_PATH}"
    operators = await oauth.db.read_long(account_store.operators)

    async def unit(tx: Tx) -> None:
        await lock_app(tx, app, actor)
        if await store.count_pending(tx, app.client_id) >= MAX_PENDING_PER_APP:
            raise FieldErrors({"reason": "Wait until the operator has decided on your earlier requests."})
        if not await store.add(tx, new_id(now), app.client_id, wanted, reason, user.id, now):
            raise FieldErrors(
                {"wanted": f"You have already requested {describe(wanted)}. The operator has not decided yet."}
            )
        for operator in operators:
            # Requests beyond the mail limit are still in the list.
            if not await oauth.limiter.count_in(tx, OPERATOR_REQUEST_MAILS, operator.email):
                continue
            mail = texts.request_for_operator(operator.email, describe(wanted), app.name, user.name, link)
            await oauth.outbox.add(tx, mail)

    await oauth.db.write(unit)
    oauth.outbox.send_soon()


async def of_app(oauth: OAuth, app: App) -> Sequence[OperatorRequest]:
    return await oauth.db.read_long(lambda tx: store.of_app(tx, app.client_id, MAX_SHOWN))


def _problem(app: App, wanted: str) -> str:
    if wanted == EXCHANGE:
        if app.org_id is None:
            return "Only an organization's app may exchange tokens."
        return f"{app.name} already has token exchange." if app.exchange.privileged else ""
    if wanted in SCOPE_NAMES:
        return f"Every app may request {wanted}. Tick it in the app's settings."
    if wanted in app.extra_scopes:
        return f"{app.name} already has the scope {wanted}."
    return "" if is_scope_name(wanted) else "Name a scope, such as read-metrics."


def _reason(given: str) -> str:
    reason = given.strip()
    if not 1 <= len(reason) <= LONGEST_REASON:
        raise Unprocessable(f"Describe the purpose in up to {LONGEST_REASON:,} characters.")
    return reason
