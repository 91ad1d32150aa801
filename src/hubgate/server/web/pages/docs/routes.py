"""The index of the documentation and the pages of the Markdown files."""

from collections.abc import Awaitable, Callable

from markupsafe import Markup, escape

from hubgate.server.access.caller import caller_of
from hubgate.server.edge.routes import Route, public
from hubgate.server.errors import NotFound
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.http.surface import Surface
from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.context import OAuth
from hubgate.server.web.pages.docs import source
from hubgate.server.web.pages.docs.navigation import INDEX, by_address, sections, side_of
from hubgate.server.web.pages.docs.rendering import CLIENT_ID, render
from hubgate.server.web.pages.oauth.developers import apps_of, choose_app
from hubgate.server.web.pages.oauth.quickstart import EXAMPLE
from hubgate.server.web.rendering import Pages

(DASHBOARD,) = source.DOWNLOADS
# The groups of files, with the parameter in the path and the summary of the route.
_FILES = (
    (source.GUIDES, "guide", "A guide of the documentation"),
    (source.DECISIONS, "decision", "A decision about the design"),
    (source.REFERENCE, "reference", "A page of the reference"),
)
Handler = Callable[[HubRequest], Awaitable[Response]]


def routes(pages: Pages, oauth: OAuth) -> list[Route]:
    base_url = oauth.base_url

    async def index(request: HubRequest) -> Response:
        return pages.page(request, "docs/index.html", sections=sections())

    def show(group: str, parameter: str) -> Handler:
        async def page(request: HubRequest) -> Response:
            name = request.param(parameter)
            if (group, name) not in source.names():
                raise NotFound("The documentation has no such page.")
            doc = render(group, name, base_url)
            address = f"{INDEX}/{group}/{name}"
            apps, chosen = await _apps(request) if doc.has_client_id else ([], EXAMPLE)
            current, link = by_address()[address]
            place = current.pages.index(link)
            return pages.page(
                request,
                "docs/page.html",
                doc=doc,
                text=_with_client_id(doc.html, chosen),
                contents=[(f"#{heading.anchor}", heading.text) for heading in doc.headings if heading.level == 2],
                **side_of(address),
                previous=current.pages[place - 1] if place else None,
                next=current.pages[place + 1] if place + 1 < len(current.pages) else None,
                apps=apps,
                chosen=chosen,
            )

        return page

    async def dashboard(_: HubRequest) -> Response:
        return Response(source.read_file(DASHBOARD), media_type="application/json")

    async def _apps(request: HubRequest) -> tuple[list[App], App]:
        person = caller_of(request).person
        apps = list(await apps_of(oauth, person)) if person else []
        return apps, choose_app(apps, request.query().get("app", ""))

    surface = Surface.PAGE
    return [
        Route("GET", INDEX, public(index), surface, "Index of the documentation"),
        Route("GET", f"{INDEX}/{DASHBOARD}", public(dashboard), surface, "A Grafana dashboard"),
        *(
            Route("GET", f"{INDEX}/{group}/{{{parameter}}}", public(show(group, parameter)), surface, summary)
            for group, parameter, summary in _FILES
        ),
    ]


def _with_client_id(html: Markup, chosen: App) -> Markup:
    if chosen is EXAMPLE:
        return html
    return Markup(html.replace(CLIENT_ID, escape(chosen.client_id)))  # noqa: S704 -- both parts are HTML
