"""The only wiring: settings -> storage -> use cases -> routes -> ASGI."""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from hubgate.server import metrics
from hubgate.server.access.guard import Guard
from hubgate.server.accounts.context import Accounts
from hubgate.server.clock import Clock, system_clock
from hubgate.server.errors import StartupError
from hubgate.server.http.csrf import Csrf
from hubgate.server.http.edge import Edge
from hubgate.server.http.headers import StandardHeaders
from hubgate.server.http.render import ErrorRenderer
from hubgate.server.http.routes import Route, RouteTable
from hubgate.server.mail.message import default_sender
from hubgate.server.mail.outbox import Outbox
from hubgate.server.mail.transport import transport_for
from hubgate.server.oauth.keys import http as keys_http
from hubgate.server.oauth.keys.ring import KeyRing
from hubgate.server.secret import ServerSecret, existing_secret
from hubgate.server.settings import Settings
from hubgate.server.storage.database import Database
from hubgate.server.storage.engines import open_database
from hubgate.server.throttle.limiter import Limiter
from hubgate.server.web import avatars, compatibility, probes
from hubgate.server.web.api import credentials, members, overviews, sessions, tokens, whoami
from hubgate.server.web.pages import apidocs, home, profiles, theme
from hubgate.server.web.pages.doors import table as door_pages
from hubgate.server.web.pages.operator import table as operator_pages
from hubgate.server.web.pages.organizations import table as organization_pages
from hubgate.server.web.pages.settings import table as settings_pages
from hubgate.server.web.rendering import Pages
from hubgate.server.web.static import static_routes


@dataclass(frozen=True)
class Hub:
    """The opened resources of one process."""

    settings: Settings
    clock: Clock
    db: Database
    secret: ServerSecret
    outbox: Outbox

    @property
    def accounts(self) -> Accounts:
        settings = self.settings
        return Accounts(self.db, self.clock, self.secret, self.outbox, self.limiter, settings.base_url, settings.signup)

    @property
    def keys(self) -> KeyRing:
        return KeyRing(self.db, self.secret, self.clock)

    @property
    def limiter(self) -> Limiter:
        return Limiter(self.db, self.clock)

    async def close(self) -> None:
        await self.outbox.finish()
        await self.db.close()


async def open_hub(settings: Settings, clock: Clock = system_clock) -> Hub:
    db = await open_database(settings.database_url)
    try:
        secret = existing_secret(settings.secret_key, settings.data_dir, settings.on_sqlite)
    except StartupError:
        await db.close()
        raise
    sender = settings.mail_from or default_sender(urlsplit(settings.base_url).hostname or "")
    transport = transport_for(settings.smtp_url, settings.data_dir)
    return Hub(settings, clock, db, secret, Outbox(db, secret, clock, transport, sender, settings.base_url))


def build_app(hub: Hub, extra_routes: Sequence[Route] = ()) -> Edge:
    settings = hub.settings
    csrf = Csrf(hub.secret, settings.base_url)
    pages = Pages(settings, csrf)
    documented: list[Route] = [
        *probes.routes(hub.db, settings),
        *keys_http.routes(hub.keys),
        *compatibility.routes(),
        *avatars.routes(),
        *whoami.routes(),
        *tokens.routes(hub.accounts),
        *sessions.routes(hub.accounts),
        *credentials.routes(hub.accounts),
        *overviews.routes(hub.accounts),
        *members.routes(hub.accounts, settings.base_url),
        *settings_pages.routes(pages, hub.accounts),
        *organization_pages.routes(pages, hub.accounts),
        *operator_pages.routes(pages, hub.accounts),
        *profiles.routes(pages, hub.accounts),
        *door_pages.routes(pages, hub.accounts),
        *home.routes(pages, hub.accounts),
        *theme.routes(pages),
        *static_routes(),
        *extra_routes,
    ]
    table = RouteTable([*documented, *apidocs.routes(pages, settings.base_url, documented)])
    return Edge(
        table=table,
        guard=Guard(hub.db, hub.clock),
        csrf=csrf,
        errors=ErrorRenderer(settings.base_url, pages.error),
        headers=StandardHeaders(settings.secure),
        trusted_proxies=settings.trusted_proxies,
        metrics=metrics.for_this_process(),
    )
