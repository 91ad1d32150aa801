"""Comments as HTML, for the API and the pages."""

from collections.abc import Sequence

from markupsafe import Markup

from hubgate.server.hub.discussions.entries.model import COMMENT, Entry
from hubgate.server.hub.git.threads import in_text_thread
from hubgate.server.hub.repos.model import Repo
from hubgate.server.web.markdown import DocumentLocation, plain_text, render_markdown

HIDDEN_COMMENT = "This comment has been hidden"
# Characters that are rendered as Markdown in one response: a million take up to ten seconds. Later comments are shown
# as plain text.
MAX_RENDERED = 256 * 1024


async def comments_as_html(repo: Repo, entries: Sequence[Entry]) -> dict[str, Markup]:
    """The HTML of each comment, by the id of the entry."""
    return await in_text_thread(_render_all, DocumentLocation(repo.path, "main"), entries)


def _render_all(location: DocumentLocation, entries: Sequence[Entry]) -> dict[str, Markup]:
    rendered: dict[str, Markup] = {}
    remaining = MAX_RENDERED
    for entry in entries:
        if entry.type != COMMENT:
            continue
        if entry.is_hidden:
            rendered[entry.id] = Markup("<p>{}</p>").format(HIDDEN_COMMENT)
            continue
        remaining -= len(entry.text)
        rendered[entry.id] = render_markdown(entry.text, location) if remaining >= 0 else plain_text(entry.text)
    return rendered
