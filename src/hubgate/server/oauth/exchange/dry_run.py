"""Dry run of a token exchange: nothing is issued, counted or recorded."""

from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.context import OAuth
from hubgate.server.oauth.errors import OAuthError
from hubgate.server.oauth.exchange.exchange import check_subject, decide_in, quota_exceeded, quota_of
from hubgate.server.oauth.exchange.model import Granted, Refused
from hubgate.server.storage.database import Tx


async def dry_run(oauth: OAuth, app: App, email: str, scope: str | None, ip: str | None) -> Granted | Refused:
    """Decide as an exchange would now. Without `ip`, allowed networks are not checked."""
    try:
        check_subject(email)
    except OAuthError as refusal:
        return Refused(refusal, refusal.message)

    async def unit(tx: Tx) -> Granted | Refused:
        verdict = await decide_in(tx, oauth, app.client_id, email, scope, ip)
        quota = app.exchange.daily_quota
        if isinstance(verdict, Granted) and quota is not None:
            limit = quota_of(quota)
            if await oauth.limiter.is_full(tx, limit, app.client_id):
                return quota_exceeded(limit, await oauth.limiter.seconds_left(tx, limit, app.client_id))
        return verdict

    return await oauth.db.read(unit)
