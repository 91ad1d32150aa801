"""The hub with pages that no visitor can open at will: every error, and a gallery of the stylesheet's components.

The gallery (gallery.html) shows each component before a page needs it. As a program it is `hubgate serve` with those
pages: `python -m tests.browser.stage --port 0 ...`.
"""

import argparse
import contextlib
import dataclasses
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import httpx
from jinja2 import ChoiceLoader, FileSystemLoader
from msgspec.structs import replace
from tests.bed.processes import hub_process
from tests.browser import (
    cast_apps,
    cast_builders,
    cast_collections,
    cast_devices,
    cast_exchange,
    cast_repos,
    cast_resources,
    cast_spaces,
    cast_webhooks,
)
from tests.browser.cast import Cast, assemble

from hubgate.cli import hub_settings
from hubgate.server import errors, logs
from hubgate.server.access.caller import caller_of
from hubgate.server.app import build_app
from hubgate.server.edge.edge import Edge
from hubgate.server.edge.routes import PublicHandler, Route, public
from hubgate.server.http.csrf import Csrf
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.http.surface import Surface
from hubgate.server.oauth.device.decision import DeviceNotFound, find_pending
from hubgate.server.resources import Hub
from hubgate.server.settings import load
from hubgate.server.startup import serve
from hubgate.server.web.local_path import continue_to
from hubgate.server.web.pages.oauth.device import DevicePages
from hubgate.server.web.rendering import Pages
from hubgate.server.worker.supervisor import Modules

ERRORS: dict[str, Exception] = {
    "400": errors.BadRequest(
        "Sign-in stopped: Atlas Notebook asked to send you to an address it has not registered. "
        "Nothing was shared. Contact the app's developer."
    ),
    "403": errors.Forbidden("Only admins of acme may see its audit log."),
    "404": errors.NotFound("Nothing here, or you don't have access. Another account may see more."),
    "405": errors.MethodNotAllowed(["POST"]),
    "413": errors.PayloadTooLarge("The body is larger than the 16,384 bytes allowed here."),
    "429": errors.TooManyRequests("Too many attempts. Try again in 12 minutes.", retry_after=715),
    "500": ValueError("a fault nobody foresaw"),
    "503": errors.StorageUnavailable(),
    "503-unknown": errors.OutcomeUnknown(),
}


@dataclass(frozen=True)
class Scene:
    """A page and its user; a visitor is not signed in."""

    address: str
    who: str = "visitor"
    status: int = 200


_PUBLIC = {
    "home": "/",
    "api": "/docs/api",
    "api-webhooks": "/docs/api/webhooks",
    "gallery": "/stage/gallery",
    "join": "/join",
    "login": "/login?next=/settings/tokens",
    "reset": "/reset",
    "search-empty": "/search",
    "search-none": "/search?q=nothing-has-this-name",
    "profile-user": "/ada",
    "profile-organization": "/acme",
}
_ADAS = {
    "home-in": "/",
    "search": "/search?q=model",
    "search-accounts": "/search?q=ac&type=accounts",
    "profile-own": "/ada",
    "settings-profile": "/settings/profile",
    "settings-password": "/settings/password",
    "settings-sessions": "/settings/sessions",
    "settings-tokens": "/settings/tokens",
    "settings-tokens-fine-grained": "/settings/tokens/fine-grained",
    "settings-organizations": "/settings/organizations",
    "settings-leave": "/settings/organizations/acme/leave",
    "settings-delete": "/settings/delete",
    "organization-new": "/organizations/new",
    "organization-profile": "/organizations/acme/settings/profile",
    "organization-members": "/organizations/acme/settings/members",
    "organization-audit-log": "/organizations/acme/settings/audit-log",
    "organization-remove-member": "/organizations/acme/settings/members/bob/remove",
    "organization-delete": "/organizations/acme/settings/delete",
    "organization-roster": "/organizations/acme/members",
    "operator": "/operator",
    "operator-users": "/operator/users",
    "operator-organizations": "/operator/organizations",
    "operator-mail": "/operator/mail",
    "operator-privileges": "/operator/privileges",
}
_NEWCOMERS = {
    "home-new": "/",
    "settings-profile-new": "/settings/profile",
    "settings-tokens-new": "/settings/tokens",
    "settings-organizations-new": "/settings/organizations",
}
_CONSENT = {
    "consent-registered": Scene(cast_apps.REGISTERED, "ada"),
    "consent-renamed": Scene(cast_apps.RENAMED, "ada"),
    "consent-document": Scene(cast_apps.DOCUMENT, "bob"),
    "consent-loopback": Scene(cast_apps.LOOPBACK, "newcomer"),
    "consent-other-server": Scene(f"{cast_apps.REGISTERED}&resource=https%3A%2F%2Fmcp.example%2Fmcp", "ada"),
    "consent-resource": Scene(cast_resources.CONSENT, "bob"),
    "consent-again": Scene(cast_apps.RENAMED, "bob"),
    "consent-self-registered": Scene(cast_apps.SELF_REGISTERED, "ada"),
    "logout": Scene(cast_apps.LOGOUT, "ada"),
    "logout-stopped": Scene(f"{cast_apps.LOGOUT}%2Felsewhere", "ada", 400),
    "login-app": Scene(continue_to("/login", cast_apps.LOOPBACK)),
    "login-again": Scene(continue_to("/login?again=1", f"{cast_apps.REGISTERED}&prompt=select_account"), "ada"),
    "settings-connected": Scene("/settings/connected", "ada"),
    "settings-connected-scopes": Scene("/settings/connected", "bob"),
    "settings-connected-app": Scene(cast_apps.CONNECTED, "ada"),
    "settings-connected-revoke": Scene(f"{cast_apps.CONNECTED}/revoke", "ada"),
    "settings-connected-new": Scene("/settings/connected", "newcomer"),
}
_BUILT = {
    "apps": Scene("/settings/applications", "ada"),
    "apps-none": Scene("/settings/applications", "newcomer"),
    "app-new": Scene("/settings/applications/new", "ada"),
    "app": Scene(cast_builders.OWN, "ada"),
    "app-secret": Scene(f"{cast_builders.OWN}/secret", "ada"),
    "app-secret-delete": Scene(f"{cast_builders.OWN}/secret/delete", "ada"),
    "app-delete": Scene(f"{cast_builders.OWN}/delete", "ada"),
    "app-ask-scope": Scene(f"{cast_builders.OWN}/ask/scope", "ada"),
    "organization-apps": Scene("/organizations/acme/settings/applications", "ada"),
    "organization-app-new": Scene("/organizations/acme/settings/applications/new", "ada"),
    "organization-app": Scene(cast_builders.ACMES, "ada"),
    "organization-app-ask": Scene(f"{cast_builders.ACMES}/ask/token-exchange", "ada"),
    "explain": Scene(cast_builders.EXPLAINED, "ada"),
    "explain-to-strangers": Scene(cast_builders.EXPLAINED, "visitor", 403),
    "explain-to-others": Scene(cast_builders.EXPLAINED, "newcomer", 403),
    "docs": Scene("/docs", "visitor"),
    "docs-guide": Scene("/docs/guides/architecture", "visitor"),
    "docs-guide-tabs": Scene("/docs/guides/device", "ada"),
    "docs-reference": Scene("/docs/reference/errors", "visitor"),
    "docs-search": Scene("/docs/search?q=webhook+secret", "visitor"),
    "docs-sign-in": Scene("/docs/sign-in", "visitor"),
    "docs-sign-in-own": Scene(f"/docs/sign-in?app={cast_apps.ATLAS}", "ada"),
    "docs-cimd": Scene("/docs/cimd", "ada"),
    "docs-protect": Scene("/docs/protect", "ada"),
    "resources": Scene("/settings/resources", "ada"),
    "resources-none": Scene("/settings/resources", "newcomer"),
    "resource-new": Scene("/organizations/acme/settings/resources/new", "ada"),
    "resource": Scene(cast_resources.AT, "ada"),
    "operator-requests": Scene("/operator/requests", "ada"),
}
_SPACES = {
    "space-app": Scene(f"{cast_spaces.RUNNING}/app", "ada"),
    "space-app-failed": Scene(f"{cast_spaces.FAILED}/app", "ada"),
    "space-app-visitor": Scene(f"{cast_spaces.RUNNING}/app"),
    "space-secret-delete": Scene(f"{cast_spaces.RUNNING}/app/secrets/WEBHOOK_SECRET/delete", "ada"),
    "operator-spaces": Scene("/operator/spaces?show=all", "ada"),
}
_REPOS = {
    "repo-card": Scene(cast_repos.TINY),
    "repo-card-empty": Scene(cast_repos.EMPTY, "ada"),
    "repo-card-private": Scene(cast_repos.PRIVATE, "ada"),
    "repo-hidden": Scene(cast_repos.PRIVATE, status=404),
    "repo-files": Scene(f"{cast_repos.TINY}/tree/main"),
    "repo-files-owner": Scene(f"{cast_repos.TINY}/tree/main/img", "ada"),
    "repo-file-new": Scene(f"{cast_repos.TINY}/new/main/img", "ada"),
    "repo-file-edit": Scene(f"{cast_repos.TINY}/edit/main/label.py", "ada"),
    "repo-file-edit-guest": Scene(f"{cast_repos.TINY}/edit/main/README.md", "newcomer"),
    "repo-file-rename": Scene(f"{cast_repos.TINY}/edit/main/model.safetensors", "ada"),
    "repo-file-delete": Scene(f"{cast_repos.TINY}/delete/main/img", "ada"),
    "repo-upload": Scene(f"{cast_repos.TINY}/upload/main/img", "ada"),
    "repo-file-code-owner": Scene(f"{cast_repos.TINY}/blob/main/label.py", "ada"),
    "repo-file-code": Scene(f"{cast_repos.TINY}/blob/main/label.py"),
    "repo-file-picture": Scene(f"{cast_repos.TINY}/blob/main/img/curve.png"),
    "repo-file-large": Scene(f"{cast_repos.TINY}/blob/main/model.safetensors"),
    "repo-file-gated": Scene(f"{cast_repos.GATED}/blob/main/notes.txt"),
    "repo-card-gated": Scene(cast_repos.GATED, "newcomer"),
    "repo-card-gated-out": Scene(cast_repos.GATED),
    "repo-card-gated-waiting": Scene(cast_repos.GATED, "ada"),
    "repo-access": Scene(f"{cast_repos.GATED}/settings/access", "bob"),
    "repo-access-none": Scene(f"{cast_repos.GATED}/settings/access?status=rejected", "bob"),
    "repo-history": Scene(f"{cast_repos.TINY}/commits/main"),
    "repo-commit": Scene(f"{cast_repos.TINY}/commit/{cast_repos.BRANCH.replace('/', '%2F')}"),
    "discussions": Scene(f"{cast_repos.TINY}/discussions"),
    "discussions-none": Scene(f"{cast_repos.EMPTY}/discussions", "ada"),
    "discussion-new": Scene(f"{cast_repos.TINY}/discussions/new", "bob"),
    "discussion": Scene(f"{cast_repos.TINY}/discussions/1", "ada"),
    "discussion-visitor": Scene(f"{cast_repos.TINY}/discussions/1"),
    "discussion-delete": Scene(f"{cast_repos.TINY}/discussions/2/delete", "ada"),
    "pull-request": Scene(f"{cast_repos.TINY}/discussions/2", "ada"),
    "pull-request-changes": Scene(f"{cast_repos.TINY}/discussions/2/files"),
    "repo-settings": Scene(f"{cast_repos.TINY}/settings", "ada"),
    "repo-delete": Scene(f"{cast_repos.TINY}/settings/delete", "ada"),
    "redirects": Scene("/organizations/acme/settings/redirects", "ada"),
    "redirects-none": Scene("/settings/redirects", "newcomer"),
    "repo-new": Scene("/new", "ada"),
    "repo-new-space": Scene("/new-space?owner=acme", "bob"),
    "models": Scene("/models?filter=vision"),
    "datasets": Scene("/datasets", "ada"),
    "spaces-none": Scene("/spaces?search=nothing"),
}
_COLLECTIONS = {
    "collections": Scene("/collections"),
    "collections-none": Scene("/collections?search=nothing", "ada"),
    "collection": Scene(cast_collections.AT),
    "collection-edit": Scene(cast_collections.AT, "ada"),
    "collection-new": Scene("/collections/new?owner=acme", "ada"),
    "collection-settings": Scene(f"{cast_collections.AT}/settings", "ada"),
    "collection-delete": Scene(f"{cast_collections.AT}/settings/delete", "ada"),
}

_EXCHANGE = {
    "exchange": Scene(f"{cast_exchange.AT}/exchange", "ada"),
    "exchange-not-yet": Scene(f"{cast_builders.ACMES}/exchange", "ada"),
    "exchange-member": Scene(f"{cast_exchange.AT}/exchange/members/bob", "ada"),
    "exchange-revoke": Scene(f"{cast_exchange.AT}/exchange/revoke?user=bob", "ada"),
    "exchange-revoke-errors": Scene(f"{cast_exchange.AT}/exchange/revoke?since=x&until=2026-09-21T15:02", "ada", 422),
    "exchange-revoke-none": Scene(f"{cast_exchange.AT}/exchange/revoke?until=2020-01-01", "ada"),
    "exchange-app": Scene(cast_exchange.AT, "ada"),
    "exchange-secret": Scene(f"{cast_exchange.AT}/secret", "ada"),
    "exchange-log": Scene("/organizations/acme/settings/audit-log?q=type:oauth.token", "ada"),
}
_DEVICES = {
    "device": Scene("/oauth/device", "ada"),
    "device-filled-in": Scene(f"/oauth/device?user_code={cast_devices.OF_APP}", "ada"),
    "device-confirm": Scene(f"/stage/devices/{cast_devices.OF_APP}", "ada"),
    "device-confirm-command-line": Scene(f"/stage/devices/{cast_devices.OF_COMMAND_LINE}", "newcomer"),
    "device-unknown": Scene("/stage/devices/BBBB-BBBB", "ada", 404),
    "device-done": Scene("/oauth/device/done", "ada"),
    "device-denied": Scene("/oauth/device/done?denied", "ada"),
}
_WEBHOOKS = {
    "webhooks": Scene("/settings/webhooks", "ada"),
    "webhooks-none": Scene("/settings/webhooks", "newcomer"),
    "webhook-new": Scene("/settings/webhooks/new", "ada"),
    "webhook": Scene(cast_webhooks.AT, "ada"),
    "webhook-week": Scene(f"{cast_webhooks.AT}?range=week", "ada"),
    "webhook-why-not": Scene(f"{cast_webhooks.AT}/why-not", "ada"),
    "webhook-why-not-unknown": Scene(f"{cast_webhooks.AT}/why-not?event={'0' * 24}", "ada", 404),
    "webhook-filtered": Scene(f"{cast_webhooks.AT}?state=stored&repo=acme/vision-tiny", "ada"),
    "webhook-filter-errors": Scene(f"{cast_webhooks.AT}?state=odd", "ada", 422),
    "webhook-settings": Scene(f"{cast_webhooks.AT}/settings", "ada"),
    "webhook-events": Scene(f"{cast_webhooks.AT}/events", "ada"),
    "webhook-secret": Scene(f"{cast_webhooks.AT}/secret", "ada"),
    "webhook-secret-remove": Scene(f"{cast_webhooks.AT}/secret/remove", "ada"),
    "webhook-delete": Scene(f"{cast_webhooks.AT}/delete", "ada"),
    "webhook-replays": Scene(f"{cast_webhooks.AT}/replays", "ada"),
    "webhook-replays-errors": Scene(f"{cast_webhooks.AT}/replays?since=x", "ada", 422),
    "webhook-replay-running": Scene(cast_webhooks.RUNNING_REPLAY, "ada"),
    "webhook-replay-done": Scene(cast_webhooks.DONE_REPLAY, "ada"),
    "webhook-suspended": Scene(cast_webhooks.SUSPENDED_AT, "ada"),
    "webhook-disabled": Scene(cast_webhooks.DISABLED_AT, "ada"),
    "delivery-retrying": Scene(cast_webhooks.RETRYING, "ada"),
    "delivery-delivered": Scene(cast_webhooks.DELIVERED, "ada"),
    "delivery-skipped": Scene(cast_webhooks.SKIPPED, "ada"),
    "organization-webhooks": Scene("/organizations/acme/settings/webhooks", "ada"),
    "organization-webhook": Scene(cast_webhooks.ACMES_AT, "ada"),
    "docs-webhooks": Scene("/docs/webhooks"),
}
_ERRORS = {f"error-{name}": f"/stage/errors/{name}" for name in ERRORS}

PAGES = (
    {name: Scene(address) for name, address in _PUBLIC.items()}
    | {name: Scene(address, status=int(name[6:9])) for name, address in _ERRORS.items()}
    | {name: Scene(address, "ada") for name, address in _ADAS.items()}
    | {name: Scene(address, "newcomer") for name, address in _NEWCOMERS.items()}
    | {"forbidden": Scene("/organizations/acme/settings/members", "newcomer", 403)}
    | _CONSENT
    | _BUILT
    | _REPOS
    | _SPACES
    | _COLLECTIONS
    | _EXCHANGE
    | _DEVICES
    | _WEBHOOKS
)
# Error pages differ only in text, so one represents all in layout tests.
LAYOUTS = {name: scene for name, scene in PAGES.items() if not name.startswith("error-")} | {
    "error-400": PAGES["error-400"]
}


@dataclass(frozen=True)
class Stage:
    url: str
    cast: Cast

    def cookies(self, who: str) -> list[Any]:
        """Cookies for a browser context in which `who` is signed in."""
        value = self.cast.cookies.get(who)
        return [{"name": "token", "value": value, "url": self.url}] if value else []

    def fetch(self, scene: Scene) -> httpx.Response:
        value = self.cast.cookies.get(scene.who)
        return httpx.get(self.url + scene.address, cookies={"token": value} if value else {})


def build(hub: Hub) -> Edge:
    pages = Pages(hub.settings, Csrf(hub.secret, hub.settings.base_url))
    loader = pages._templates.loader
    assert loader is not None
    # Other hubs of this process share the templates.
    pages._templates = pages._templates.overlay()
    pages._templates.loader = ChoiceLoader([loader, FileSystemLoader(Path(__file__).parent)])

    async def gallery(request: HubRequest) -> Response:
        wrong = {"token-name": "Give the token a name.", "url": "This address is not allowed: private network."}
        return pages.page(request, "gallery.html", 200, wrong)

    async def fail(request: HubRequest) -> NoReturn:
        raise ERRORS[request.param("name")]

    async def confirm(request: HubRequest) -> Response:
        """The page that entering a code leads to, for tests that only read."""
        device, caller, code = DevicePages(pages, hub.oauth), caller_of(request), request.param("code")
        try:
            waiting = await find_pending(hub.oauth, caller.signed_in_person, code, request.client_ip)
        except DeviceNotFound as error:
            return device.show_error(request, error, code)
        return await device.show_confirmation(request, caller, waiting)

    def page(path: str, handler: PublicHandler) -> Route:
        return Route("GET", path, public(handler), Surface.PAGE, "stage")

    # Pages of Spaces as on a hub that runs them; no process here does.
    running = replace(hub, settings=dataclasses.replace(hub.settings, spaces_runner="bubblewrap"))
    return build_app(
        running,
        [page("/stage/gallery", gallery), page("/stage/errors/{name}", fail), page("/stage/devices/{code}", confirm)],
    )


@contextlib.contextmanager
def staged() -> Iterator[Stage]:
    """A running stage with its cast."""
    with tempfile.TemporaryDirectory(prefix="hubgate-stage-") as folder:
        program = [sys.executable, "-m", "tests.browser.stage"]
        with hub_process(Path(folder), "--deliver", "off", program=program) as hub:
            yield Stage(hub.url, assemble(load({"data_dir": f"{folder}/var", "base_url": hub.url}, environment={})))
            hub.stop()


def main() -> None:
    parser = argparse.ArgumentParser()
    hub_settings.add_to(parser)
    logs.configure()
    settings = hub_settings.read(parser.parse_args())
    serve(
        settings,
        lambda ready, _: print(f"ready: {ready.base_url}", flush=True),
        modules=Modules("tests.browser.stage_web"),
    )


if __name__ == "__main__":
    main()
