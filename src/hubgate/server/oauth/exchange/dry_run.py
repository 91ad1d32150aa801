"""Dry run of a token exchange: nothing is issued, counted or recorded."""

from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.context import OAuth
from hubgate.server.oauth.errors import OAuthRefused
from hubgate.server.oauth.exchange.exchanging import check_subject, quota_of, used_up, verdict_in
from hubgate.server.oauth.exchange.model import Given, Refused
from hubgate.server.storage.database import Tx


async def dry_run(oauth: OAuth, app: App, email: str, scope: str | None, ip: str | None) -> Given | Refused:
    """Decide as an exchange would now. Without `ip`, allowed networks are not checked."""
    try:
        check_subject(email)
    except OAuthRefused as refusal:
        return Refused(refusal, refusal.message)

    async def unit(tx: Tx) -> Given | Refused:
        verdict = await verdict_in(tx, oauth, app.client_id, email, scope, ip)
        quota = app.exchange.daily_quota
        if isinstance(verdict, Given) and quota is not None:
            limit = quota_of(quota)
            if await oauth.limiter.is_full(tx, limit, app.client_id):
                return used_up(limit, await oauth.limiter.seconds_left(tx, limit, app.client_id))
        return verdict

    return await oauth.db.read(unit)
