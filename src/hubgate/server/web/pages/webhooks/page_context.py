"""Shared parts of the pages about webhooks: routes in the settings of users and organizations, and rendering."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from hubgate.server.accounts.context import Accounts
from hubgate.server.edge.routes import KIB, Handler, Route
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.http.surface import Surface
from hubgate.server.web.owner_routes import WEBHOOKS, OwnerContext, render_settings_page
from hubgate.server.web.rendering import NO_ERRORS, Pages
from hubgate.server.web.untrusted_text import display_name
from hubgate.server.webhooks.context import Webhooks
from hubgate.server.webhooks.management import lifecycle
from hubgate.server.webhooks.management.lifecycle import StoredWebhook
from hubgate.server.webhooks.model import Webhook

ONE = "/{id}"
_CAP = 64 * KIB
_TABS = (("", "Activity"), ("/settings", "Settings"), ("/events", "Events"))


def name_of(webhook: Webhook) -> str:
    """The displayed name: the receiver's host, or the id of a webhook without an address."""
    return webhook.host or webhook.id


class WebhookPageContext(Struct, frozen=True):
    pages: Pages
    webhooks: Webhooks
    accounts: Accounts

    def views(self, path: str, handler: Handler[OwnerContext], summary: str) -> list[Route]:
        """Create routes for a read-only page."""
        return self._routes("GET", path, handler, summary)

    def forms(self, method: str, path: str, handler: Handler[OwnerContext], summary: str) -> list[Route]:
        """Create routes for a form: viewing it requires the permission to submit it."""
        return self._routes(method, path, handler, summary, form=True)

    def _routes(
        self, method: str, path: str, handler: Handler[OwnerContext], summary: str, *, form: bool = False
    ) -> list[Route]:
        route, for_organization = (method, path, handler, Surface.PAGE), f"{summary} (an organization's)"
        return [
            WEBHOOKS.route(None, *route, summary, form=form, body_cap=_CAP),
            WEBHOOKS.route(self.accounts, *route, for_organization, form=form, body_cap=_CAP),
        ]

    def show(
        self,
        request: HubRequest,
        context: OwnerContext,
        template: str,
        errors: Mapping[str, str] = NO_ERRORS,
        **values: Any,
    ) -> Response:
        return render_settings_page(self.pages, request, context, f"webhooks/{template}", errors, **values)

    def show_one(
        self,
        request: HubRequest,
        context: OwnerContext,
        stored: StoredWebhook,
        template: str,
        errors: Mapping[str, str] = NO_ERRORS,
        **values: Any,
    ) -> Response:
        """Render a page about one webhook. The template determines the tab."""
        at = context.address_of(stored.webhook.id)
        tabs = [(at + path, label, f"{label.lower()}.html" == template) for path, label in _TABS]
        return self.show(
            request,
            context,
            template,
            errors,
            webhook=stored.webhook,
            watched=stored.watched,
            name=name_of(stored.webhook),
            app=display_name(stored.app).strip() or stored.webhook.client_id,
            at=at,
            tabs=tabs,
            **values,
        )

    async def load(self, request: HubRequest, context: OwnerContext) -> StoredWebhook:
        return await lifecycle.get(self.webhooks, context.owner, request.param("id"))
