"""An organization's app on the stage that exchanges tokens: live ones for several members, and refused exchanges."""

from msgspec.structs import replace
from tests.browser.cast_apps import EVERY_SCOPE

from hubgate.server.accounts.model import Organization, Owner, Visitor
from hubgate.server.audit.model import SYSTEM, Actor
from hubgate.server.clock import SECOND
from hubgate.server.errors import HubError
from hubgate.server.oauth.apps import management, privileges
from hubgate.server.oauth.apps.model import App, ExchangeSettings
from hubgate.server.oauth.exchange import store as exchange_store
from hubgate.server.oauth.exchange.exchange import exchange
from hubgate.server.resources import Hub

PORTAL = "acme-portal"
AT = f"/organizations/acme/settings/applications/{PORTAL}"

_SERVER = Visitor("203.0.113.40", "acme-portal/2.1 python-httpx")
_ELSEWHERE = Visitor("2001:db8:ffff::77", "curl/8.9")
_WISHES = [None, "read-repos", "read-repos gated-repos", "openid profile email", None]


async def add_exchange(hub: Hub, acme: Organization, actor: Actor, emails: list[str]) -> None:
    limits = ExchangeSettings(
        networks=("203.0.113.0/24", "2001:db8::/33"), daily_quota=5000, roles=("admin", "write", "read")
    )
    draft = App(
        PORTAL,
        "Acme Portal for all members (in-house)",
        homepage="https://portal.acme.example",
        redirect_uris=("https://portal.acme.example/callback",),
        scopes=tuple(EVERY_SCOPE.split()[-9:]),
        confidential=True,
        exchange=limits,
    )
    await management.create(hub.oauth, Owner(org_id=acme.id), draft, actor)
    await privileges.set_exchange(hub.oauth, PORTAL, True, SYSTEM)
    asked = [(email, scope, _SERVER) for email in emails for scope in _WISHES]
    asked += [("former.member@example.org", None, _SERVER), (emails[0], "fly", _SERVER), (emails[0], None, _ELSEWHERE)]
    for number, (email, scope, visitor) in enumerate(asked):
        moment = hub.clock() + number * SECOND
        subject = await hub.db.read(lambda tx, email=email: exchange_store.find(tx, PORTAL, email))
        try:
            await exchange(replace(hub.oauth, clock=lambda moment=moment: moment), subject, email, scope, visitor)
        except HubError:
            # It is in the audit log.
            continue
