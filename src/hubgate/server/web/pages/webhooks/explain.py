"""Why a webhook did not get an event, as a page; and suggestions of names for the form of a webhook, as JSON."""

from hubgate.server.access.visibility import visible_repos
from hubgate.server.edge.routes import Route
from hubgate.server.errors import NotFound
from hubgate.server.http.render import JsonResponse
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.web.owner_routes import OwnerContext
from hubgate.server.web.pages.webhooks.delivery_links import repo_path
from hubgate.server.web.pages.webhooks.page_context import ONE, WebhookPageContext
from hubgate.server.web.rendering import NO_ERRORS
from hubgate.server.webhooks.matching import watched_names, why_not

_LONGEST_ID = 100


def routes(base: WebhookPageContext) -> list[Route]:
    webhooks = base.webhooks

    async def show_why_not(request: HubRequest, context: OwnerContext) -> Response:
        stored, typed = await base.load(request, context), request.query().get("event", "").strip()[:_LONGEST_ID]
        visible, found, errors = visible_repos(context.identity), None, NO_ERRORS
        if typed:
            try:
                found = await why_not.explain(webhooks, stored.webhook, typed, visible)
            except NotFound as error:
                errors = {"event": error.message}
        return base.show_one(
            request,
            context,
            stored,
            "why_not.html",
            errors,
            status=404 if errors else None,
            found=found,
            event_repo=repo_path(found.event.repo_type, found.event.repo_name or "") if found else "",
            typed=typed,
            recent=await why_not.recent_events(webhooks, visible),
        )

    async def suggest(request: HubRequest, context: OwnerContext) -> Response:
        text = request.query().get("q", "")
        found = await watched_names.suggest(webhooks, text, visible_repos(context.identity))
        return JsonResponse([f"{watch.type}:{watch.name}" for watch in found])

    return [
        *base.views(f"{ONE}/why-not", show_why_not, "Why a webhook did not get an event"),
        *base.forms("GET", "/suggestions", suggest, "Names to watch, while a user types"),
    ]
