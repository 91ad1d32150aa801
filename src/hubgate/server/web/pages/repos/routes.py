"""All routes of the pages about repos."""

from hubgate.server.edge.guard import Guard
from hubgate.server.edge.routes import Route
from hubgate.server.hub.context import Repos
from hubgate.server.spaces.context import Spaces
from hubgate.server.web.pages.repos import access, card, commits, create, files, lists, settings
from hubgate.server.web.pages.repos.discussions import comment_forms, conversation, forms
from hubgate.server.web.pages.repos.discussions import lists as discussion_lists
from hubgate.server.web.pages.repos.editing import delete, edit, upload
from hubgate.server.web.pages.repos.editing.commit_form import Editing
from hubgate.server.web.pages.repos.page_context import RepoPageContext
from hubgate.server.web.pages.spaces import app as space_app
from hubgate.server.web.pages.spaces import settings as space_settings
from hubgate.server.web.pages.spaces.page_context import SpacePageContext
from hubgate.server.web.rendering import Pages


def routes(pages: Pages, repos: Repos, spaces: Spaces, guard: Guard) -> list[Route]:
    base = RepoPageContext(pages, repos)
    editing = Editing(base, guard)
    space_context = SpacePageContext(base, spaces)
    return [
        *lists.routes(base),
        *create.routes(base),
        *card.routes(base),
        *files.routes(base),
        *edit.routes(editing),
        *upload.routes(editing),
        *delete.routes(editing),
        *commits.routes(base),
        *discussion_lists.routes(base),
        *conversation.routes(base),
        *forms.routes(base),
        *comment_forms.routes(base),
        *settings.routes(base),
        *access.routes(base),
        *space_app.routes(space_context),
        *space_settings.routes(space_context),
    ]
