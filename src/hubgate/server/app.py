"""Builds the ASGI app from the routes of all packages. `resources.py` builds the use cases that the routes call."""

from collections.abc import Sequence
from functools import partial

from hubgate.server import metrics
from hubgate.server.accounts.tokens.text import TokenKind
from hubgate.server.edge.edge import Edge
from hubgate.server.edge.guard import Guard
from hubgate.server.edge.routes import Route
from hubgate.server.edge.table import RouteTable
from hubgate.server.http.csrf import Csrf
from hubgate.server.http.headers import StandardHeaders
from hubgate.server.http.render import ErrorRenderer
from hubgate.server.oauth.registration.model import OFF
from hubgate.server.oauth.tokens import access_jwt
from hubgate.server.oauth.tokens.bearer import BearerTokens
from hubgate.server.resources import Hub
from hubgate.server.web import (
    avatars,
    buttons,
    compatibility,
    hosted_spaces,
    probes,
    repos_without_namespace,
    tunnel_links,
)
from hubgate.server.web.api import (
    applications,
    audit,
    connected_apps,
    credentials,
    event_schemas,
    exchanges,
    members,
    overviews,
    redirects,
    resource_servers,
    search,
    sessions,
    tokens,
    tunnels,
    webhook_events,
    webhook_matching,
    webhook_replays,
    webhooks,
    whoami,
)
from hubgate.server.web.api.collections import routes as collections
from hubgate.server.web.api.repos import (
    access_requests,
    comments,
    compare,
    contents,
    details,
    discussions,
    owned,
    uploads,
    validate_yaml,
)
from hubgate.server.web.api.repos import events as repo_events
from hubgate.server.web.api.repos import lifecycle as repo_lifecycle
from hubgate.server.web.api.repos import listing as repo_lists
from hubgate.server.web.api.repos import refs as repo_refs
from hubgate.server.web.api.spaces import logs as space_logs
from hubgate.server.web.api.spaces import runtime as space_runtime
from hubgate.server.web.api.spaces import settings as space_settings
from hubgate.server.web.files import large_files, resolve
from hubgate.server.web.gateway import routes as gateway
from hubgate.server.web.git import routes as git
from hubgate.server.web.oauth import device as device_endpoint
from hubgate.server.web.oauth import discovery, jwks, registration, revocation, userinfo
from hubgate.server.web.oauth import token as token_endpoint
from hubgate.server.web.pages import home, profiles, theme
from hubgate.server.web.pages import redirects as redirect_pages
from hubgate.server.web.pages import search as search_pages
from hubgate.server.web.pages.api_reference import routes as api_reference
from hubgate.server.web.pages.collections import routes as collection_pages
from hubgate.server.web.pages.docs import routes as docs_pages
from hubgate.server.web.pages.entry import routes as entry_pages
from hubgate.server.web.pages.oauth import authorize, developers, device, explain, logout, protect
from hubgate.server.web.pages.oauth import connected_apps as connected_app_pages
from hubgate.server.web.pages.oauth import resource_servers as resource_server_pages
from hubgate.server.web.pages.oauth.apps import routes as app_pages
from hubgate.server.web.pages.operator import routes as operator_pages
from hubgate.server.web.pages.organizations import routes as organization_pages
from hubgate.server.web.pages.repos import routes as repo_pages
from hubgate.server.web.pages.settings import routes as settings_pages
from hubgate.server.web.pages.spaces import operator as operator_spaces
from hubgate.server.web.pages.webhooks import routes as webhook_pages
from hubgate.server.web.rendering import Pages
from hubgate.server.web.static import static_routes
from hubgate.server.web.xet import downloads as storage_downloads
from hubgate.server.web.xet import tokens as storage_tokens
from hubgate.server.web.xet import uploads as storage_uploads


def build_app(hub: Hub, extra_routes: Sequence[Route] = ()) -> Edge:
    settings = hub.settings
    csrf = Csrf(hub.secret, settings.base_url)
    pages = Pages(settings, csrf)
    read_jwt = partial(access_jwt.read_jwt, hub.oauth)
    bearer = BearerTokens(hub.oauth)
    guard = Guard(hub.db, hub.clock, hub.secret, {TokenKind.OAUTH: bearer.find}, settings.secure, read_jwt)
    hardware = space_runtime.flavor(settings.spaces_cpu, settings.spaces_memory, settings.spaces_disk)
    documented: list[Route] = [
        *probes.routes(hub.db, settings),
        *discovery.routes(settings.base_url, registration=settings.dynamic_registration != OFF),
        *jwks.routes(hub.keys),
        *token_endpoint.routes(hub.oauth),
        *device_endpoint.routes(hub.oauth),
        *registration.routes(hub.oauth),
        *webhooks.routes(hub.webhooks, hub.accounts),
        *webhook_replays.routes(hub.webhooks, hub.accounts),
        *tunnels.routes(hub.webhooks, guard, hub.limits.permission_check_seconds),
        *webhook_events.routes(hub.webhooks, hub.accounts, guard, hub.live_streams),
        *webhook_matching.routes(hub.webhooks, hub.accounts),
        *event_schemas.routes(settings.base_url),
        *webhook_pages.routes(pages, hub.webhooks, hub.accounts),
        *userinfo.routes(settings.base_url),
        *revocation.routes(hub.oauth, bearer),
        *authorize.routes(pages, hub.oauth, csrf),
        *logout.routes(pages, hub.accounts, hub.oauth, csrf),
        *connected_app_pages.routes(pages, hub.oauth, hub.webhooks),
        *connected_apps.routes(hub.oauth, hub.webhooks),
        *compatibility.routes(),
        *avatars.routes(hub.db),
        *whoami.routes(),
        *tokens.routes(hub.accounts),
        *sessions.routes(hub.accounts),
        *credentials.routes(hub.accounts),
        *overviews.routes(hub.accounts, hub.repos, guard),
        *members.routes(hub.accounts),
        *audit.routes(hub.accounts),
        *applications.routes(hub.oauth, hub.accounts),
        *exchanges.routes(hub.oauth, hub.accounts),
        *resource_servers.routes(hub.oauth, hub.accounts),
        *repo_lifecycle.routes(hub.repos, hub.spaces),
        *redirects.routes(hub.repos, hub.accounts),
        *redirect_pages.routes(pages, hub.repos, hub.accounts),
        *details.info_routes(hub.repos, hub.spaces),
        *repo_lists.routes(hub.repos),
        *owned.routes(hub.repos, hub.accounts),
        *details.settings_routes(hub.repos),
        *repo_events.routes(hub.repos),
        *contents.routes(hub.repos),
        *compare.routes(hub.repos),
        *repo_refs.routes(hub.repos),
        *validate_yaml.routes(),
        *space_runtime.routes(hub.repos, hub.spaces, hardware),
        *space_settings.routes(hub.repos, hub.spaces),
        *space_logs.routes(hub.repos, hub.spaces, guard, hub.log_streams),
        *uploads.routes(hub.repos, guard),
        *discussions.routes(hub.repos),
        *comments.routes(hub.repos),
        *access_requests.routes(hub.repos),
        *collections.routes(hub.repos),
        *search.routes(hub.repos),
        *resolve.routes(hub.repos),
        *large_files.routes(hub.repos),
        *storage_tokens.routes(hub.repos, guard),
        *storage_uploads.routes(hub.repos, guard),
        *storage_downloads.routes(hub.repos),
        *git.routes(hub.repos, guard),
        *gateway.routes(hub.gateway, hub.accounts, guard),
        *settings_pages.routes(pages, hub.accounts, hub.repos, hub.oauth, hub.webhooks),
        *organization_pages.routes(pages, hub.accounts, hub.repos),
        *app_pages.routes(pages, hub.oauth, hub.accounts),
        *resource_server_pages.routes(pages, hub.oauth, hub.accounts),
        *explain.routes(pages, hub.oauth),
        *device.routes(pages, hub.oauth),
        *developers.routes(pages, hub.oauth),
        *protect.routes(pages, hub.oauth),
        *docs_pages.routes(pages, hub.oauth),
        *buttons.routes(),
        *operator_pages.routes(pages, hub.accounts, hub.oauth, hub.webhooks, hub.heartbeats),
        *operator_spaces.routes(pages, hub.oauth, hub.repos, hub.spaces),
        *profiles.routes(pages, hub.accounts, hub.repos),
        *entry_pages.routes(pages, hub.accounts, hub.oauth),
        *home.routes(pages, hub.accounts, hub.repos, hub.oauth, hub.webhooks),
        *repo_pages.routes(pages, hub.repos, hub.spaces, guard),
        *collection_pages.routes(pages, hub.repos),
        *search_pages.routes(pages, hub.repos),
        *theme.routes(pages),
        *extra_routes,
    ]
    table = RouteTable(
        [
            *documented,
            *tunnel_links.routes(hub.tunnels),
            *hosted_spaces.routes(hub.repos, hub.spaces, hub.hosting),
            *repos_without_namespace.routes(),
            *static_routes(),
            *api_reference.routes(pages, settings.base_url, documented),
        ]
    )
    return Edge(
        table=table,
        guard=guard,
        csrf=csrf,
        errors=ErrorRenderer(settings.base_url, pages.error),
        headers=StandardHeaders(settings.secure),
        trusted_proxies=settings.trusted_proxies,
        metrics=metrics.for_this_process(),
        tunnel_links=hub.tunnels.links,
    )
