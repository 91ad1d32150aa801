"""All routes of the pages about repos."""

from hubgate.server.edge.routes import Route
from hubgate.server.hub.context import Repos
from hubgate.server.web.pages.repos import card, commits, create, files, lists, settings
from hubgate.server.web.pages.repos.frame import RepoFrame
from hubgate.server.web.rendering import Pages


def routes(pages: Pages, repos: Repos) -> list[Route]:
    frame = RepoFrame(pages, repos)
    return [
        *lists.routes(frame),
        *create.routes(frame),
        *card.routes(frame),
        *files.routes(frame),
        *commits.routes(frame),
        *settings.routes(frame),
    ]
