"""All routes of the pages about collections."""

from hubgate.server.edge.routes import Route
from hubgate.server.hub.context import Repos
from hubgate.server.web.pages.collections import create, lists, settings, view
from hubgate.server.web.pages.collections.page_context import CollectionPageContext
from hubgate.server.web.rendering import Pages


def routes(pages: Pages, repos: Repos) -> list[Route]:
    base = CollectionPageContext(pages, repos)
    return [*lists.routes(base), *create.routes(base), *view.routes(base), *settings.routes(base)]
