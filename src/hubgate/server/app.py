"""The only wiring: settings -> storage -> use cases -> routes -> ASGI."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from urllib.parse import urlsplit

from hubgate.server import metrics
from hubgate.server.access.guard import Guard
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.tokens.text import TokenKind
from hubgate.server.clock import Clock, system_clock
from hubgate.server.egress.client import Egress
from hubgate.server.errors import StartupError
from hubgate.server.http.csrf import Csrf
from hubgate.server.http.edge import Edge
from hubgate.server.http.headers import StandardHeaders
from hubgate.server.http.render import ErrorRenderer
from hubgate.server.http.routes import Route, RouteTable
from hubgate.server.hub.context import Repos
from hubgate.server.hub.git.folders import Folders
from hubgate.server.hub.lfs.files import LargeFiles
from hubgate.server.hub.repos import removing as repo_removing
from hubgate.server.mail.message import default_sender
from hubgate.server.mail.outbox import Outbox
from hubgate.server.mail.transport import transport_for
from hubgate.server.oauth import discovery, revocation, userinfo
from hubgate.server.oauth.cimd.documents import Documents
from hubgate.server.oauth.context import OAuth
from hubgate.server.oauth.device import starting as device_start
from hubgate.server.oauth.grants import http as token_endpoint
from hubgate.server.oauth.keys import http as keys_http
from hubgate.server.oauth.keys.ring import KeyRing
from hubgate.server.oauth.tokens.bearer import Bearers
from hubgate.server.secret import ServerSecret, existing_secret
from hubgate.server.settings import Settings
from hubgate.server.storage.database import Database
from hubgate.server.storage.engines import open_database
from hubgate.server.throttle.limiter import Limiter
from hubgate.server.web import avatars, buttons, compatibility, probes
from hubgate.server.web.api import (
    applications,
    audit,
    connected_apps,
    credentials,
    exchanges,
    members,
    overviews,
    sessions,
    tokens,
    whoami,
)
from hubgate.server.web.api.repos import commits_list, contents, uploads, validate_yaml
from hubgate.server.web.api.repos import events as repo_events
from hubgate.server.web.api.repos import info as repo_info
from hubgate.server.web.api.repos import lifecycle as repo_lifecycle
from hubgate.server.web.api.repos import listing as repo_lists
from hubgate.server.web.api.repos import refs as repo_refs
from hubgate.server.web.api.repos import settings as repo_settings
from hubgate.server.web.files import large_files, resolving
from hubgate.server.web.git import routes as git
from hubgate.server.web.pages import apidocs, home, profiles, theme
from hubgate.server.web.pages.doors import table as door_pages
from hubgate.server.web.pages.oauth import authorize, connected, developers, device, explain
from hubgate.server.web.pages.oauth.apps import table as app_pages
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
    egress: Egress

    @property
    def accounts(self) -> Accounts:
        settings = self.settings
        return Accounts(
            db=self.db,
            clock=self.clock,
            secret=self.secret,
            outbox=self.outbox,
            limiter=self.limiter,
            base_url=settings.base_url,
            signup=settings.signup,
            take_along=partial(repo_removing.deleted_with_owner, settings.base_url),
        )

    @cached_property
    def oauth(self) -> OAuth:
        settings = self.settings
        return OAuth(
            db=self.db,
            clock=self.clock,
            secret=self.secret,
            keys=self.keys,
            limiter=self.limiter,
            outbox=self.outbox,
            base_url=settings.base_url,
            cli_client_ids=settings.cli_client_ids,
            extra_scopes=settings.extra_scopes,
            subject_token_types=settings.subject_token_type_aliases,
            documents=Documents(
                self.db,
                self.clock,
                self.limiter,
                self.egress,
                settings.cimd_max_bytes,
                settings.cimd_allow_http_loopback,
            ),
        )

    @cached_property
    def repos(self) -> Repos:
        settings = self.settings
        return Repos(
            db=self.db,
            clock=self.clock,
            secret=self.secret,
            base_url=settings.base_url,
            folders=Folders(settings.data_dir / "repos"),
            large_files=LargeFiles(settings.data_dir / "lfs"),
            regular_upload_max=settings.regular_upload_max,
        )

    @property
    def keys(self) -> KeyRing:
        return KeyRing(self.db, self.secret, self.clock)

    @property
    def limiter(self) -> Limiter:
        return Limiter(self.db, self.clock)

    async def close(self) -> None:
        await self.outbox.finish()
        self.egress.close()
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
    outbox = Outbox(db, secret, clock, transport, sender, settings.base_url)
    return Hub(settings, clock, db, secret, outbox, egress_for(settings))


def egress_for(settings: Settings) -> Egress:
    """The hub's own addresses are closed to it: a request to ourselves would be a loop."""
    public = urlsplit(settings.base_url)
    port = public.port or (443 if settings.secure else 80)
    own = frozenset({(public.hostname or "", port), (settings.host, settings.port)})
    return Egress(settings.egress_allow, settings.egress_proxy, own)


def build_app(hub: Hub, extra_routes: Sequence[Route] = ()) -> Edge:
    settings = hub.settings
    csrf = Csrf(hub.secret, settings.base_url)
    pages = Pages(settings, csrf)
    guard = Guard(hub.db, hub.clock, {TokenKind.OAUTH: Bearers(hub.oauth).find})
    documented: list[Route] = [
        *probes.routes(hub.db, settings),
        *discovery.routes(settings.base_url),
        *keys_http.routes(hub.keys),
        *token_endpoint.routes(hub.oauth),
        *device_start.routes(hub.oauth),
        *userinfo.routes(settings.base_url),
        *revocation.routes(hub.oauth),
        *authorize.routes(pages, hub.oauth, csrf),
        *connected.routes(pages, hub.oauth),
        *connected_apps.routes(hub.oauth),
        *compatibility.routes(),
        *avatars.routes(),
        *whoami.routes(),
        *tokens.routes(hub.accounts),
        *sessions.routes(hub.accounts),
        *credentials.routes(hub.accounts),
        *overviews.routes(hub.accounts),
        *members.routes(hub.accounts),
        *audit.routes(hub.accounts),
        *applications.routes(hub.oauth, hub.accounts),
        *exchanges.routes(hub.oauth, hub.accounts),
        *repo_lifecycle.routes(hub.repos),
        *repo_info.routes(hub.repos),
        *repo_lists.routes(hub.repos),
        *repo_settings.routes(hub.repos),
        *repo_events.routes(hub.repos),
        *contents.routes(hub.repos),
        *commits_list.routes(hub.repos),
        *repo_refs.routes(hub.repos),
        *validate_yaml.routes(),
        *uploads.routes(hub.repos),
        *resolving.routes(hub.repos),
        *large_files.routes(hub.repos),
        *git.routes(hub.repos, guard),
        *settings_pages.routes(pages, hub.accounts, hub.oauth),
        *organization_pages.routes(pages, hub.accounts),
        *app_pages.routes(pages, hub.oauth, hub.accounts),
        *explain.routes(pages, hub.oauth),
        *device.routes(pages, hub.oauth),
        *developers.routes(pages, hub.oauth),
        *buttons.routes(),
        *operator_pages.routes(pages, hub.accounts, hub.oauth),
        *profiles.routes(pages, hub.accounts),
        *door_pages.routes(pages, hub.accounts, hub.oauth),
        *home.routes(pages, hub.accounts),
        *theme.routes(pages),
        *extra_routes,
    ]
    table = RouteTable([*documented, *static_routes(), *apidocs.routes(pages, settings.base_url, documented)])
    return Edge(
        table=table,
        guard=guard,
        csrf=csrf,
        errors=ErrorRenderer(settings.base_url, pages.error),
        headers=StandardHeaders(settings.secure),
        trusted_proxies=settings.trusted_proxies,
        metrics=metrics.for_this_process(),
    )
