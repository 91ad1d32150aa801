"""`/tree/{rev}/{path}`: the content of a folder. `/blob/{rev}/{path}`: one file: an image, rendered
Markdown, or text. HTML files are shown as text and never run (attack O60).
"""

import re
import unicodedata

from markupsafe import Markup
from msgspec import Struct
from pygit2.enums import FileMode

from hubgate.server.access.actions import Action
from hubgate.server.edge.routes import Route
from hubgate.server.errors import NotFound
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import RedirectResponse, Response
from hubgate.server.hub.git import history, objects
from hubgate.server.hub.git.objects import EntryType, TreeEntry
from hubgate.server.hub.git.threads import in_text_thread
from hubgate.server.hub.git.trees import folder_page
from hubgate.server.hub.repos import lookup
from hubgate.server.hub.repos.card import split_readme
from hubgate.server.hub.repos.model import Repo
from hubgate.server.web.files.media_types import is_image
from hubgate.server.web.files.resolve import READABLE_BEFORE_GATE
from hubgate.server.web.markdown import EXTENSIONS, DocumentLocation, render_markdown
from hubgate.server.web.pages.repos.editing.text import LARGEST_TEXT
from hubgate.server.web.pages.repos.page_context import RepoLocation, RepoPageContext, address, page_number

ROWS = 100
# The last change of each row is searched for in this many commits; a deeper search is too expensive.
SEARCH_DEPTH = 100
_VERBS = ("tree", "commits")


MAX_LINES = 5_000
# Bidirectional controls, which can make code look different from what it does.
_BIDI_CONTROLS = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


class FileView(Struct, frozen=True):
    """The displayed content of a file; all fields are empty if the caller may not read the file."""

    image: str = ""
    markdown: Markup | None = None
    lines: tuple[str, ...] = ()
    # The text contains bidirectional controls, which are spelled out.
    has_bidi_controls: bool = False
    # Why nothing is shown.
    reason: str = ""
    # Whether the whole file is text that a form can edit.
    is_text: bool = False


def routes(base: RepoPageContext) -> list[Route]:
    return [*_folder_routes(base), *_file_routes(base)]


def _folder_routes(base: RepoPageContext) -> list[Route]:
    async def pick(request: HubRequest, repo: Repo) -> Response:
        """Redirect from the picker's form, which cannot construct an address itself."""
        query = request.query()
        verb, rev = query.get("to", "tree"), query.get("rev", "main")
        if verb not in _VERBS:
            raise NotFound("List not found.")
        return RedirectResponse(address(repo, verb, rev, query.get("path", "") if verb == "tree" else ""), 303)

    async def tree(request: HubRequest, repo: Repo) -> Response:
        location = await base.location(request, repo)
        number, folder = page_number(request), base.repos.folders.of(repo.id)
        found = await folder_page(folder, location.sha, location.path, (number - 1) * ROWS, ROWS)
        if found is None:
            return await _redirect_to_file(location)
        if not found.entries and number > 1:
            raise NotFound("Page not found in this list.")
        paths = [entry.path for entry in found.entries]
        changes = await history.recent_changes(folder, location.sha, paths, SEARCH_DEPTH)
        newest = await history.read_commit(folder, location.sha)
        may_read = base.may(request, repo, Action.REPO_READ_CONTENT)
        return base.show(
            request,
            repo,
            "tree.html",
            "files",
            location=location,
            entries=found.entries,
            is_folder=EntryType.DIRECTORY,
            may_read=may_read,
            readable=() if may_read else await _readable_before_gate(base, location),
            total=found.total,
            changes=changes,
            newest=newest,
            number=number,
            last=max(1, -(-found.total // ROWS)),
            may_change=base.may_change(request, location),
            **await base.picker(location),
        )

    async def _redirect_to_file(location: RepoLocation) -> Response:
        entry = await objects.entry_at(base.repos.folders.of(location.repo.id), location.sha, location.path)
        if entry is None:
            raise NotFound(f"Folder {location.path[:200]} not found at {location.rev[:100]}.")
        return RedirectResponse(location.to("blob", location.path), 303)

    return [
        *base.views("/tree", pick, "Redirect to a repo's files at a revision"),
        *base.views("/tree/{rest:path}", tree, "The files of a repo"),
    ]


def _file_routes(base: RepoPageContext) -> list[Route]:
    async def blob(request: HubRequest, repo: Repo) -> Response:
        location = await base.location(request, repo)
        folder = base.repos.folders.of(repo.id)
        entry = await objects.entry_at(folder, location.sha, location.path)
        if entry is None:
            raise NotFound(f"File {location.path[:200]} not found at {location.rev[:100]}.")
        if entry.type is EntryType.DIRECTORY:
            return RedirectResponse(location.to("tree", location.path), 303)
        may_edit = base.may(request, repo, Action.REPO_READ_CONTENT)
        may_read = may_edit or location.path in await _readable_before_gate(base, location)
        plain = request.query().get("plain") == "1"
        view = await view_of(base, location, entry, plain=plain) if may_read else FileView()
        changes = await history.recent_changes(folder, location.sha, [location.path], SEARCH_DEPTH)
        return base.show(
            request,
            repo,
            "blob.html",
            "files",
            location=location,
            entry=entry,
            name=location.path.rpartition("/")[2],
            view=view,
            may_read=may_read,
            plain=plain,
            is_markdown=_has_extension(location.path, EXTENSIONS),
            change=changes.get(location.path),
            may_change=base.may_change(request, location),
            may_edit=may_edit and entry.mode != FileMode.LINK,
            **await base.picker(location),
        )

    return base.views("/blob/{rest:path}", blob, "One file of a repo")


async def _readable_before_gate(base: RepoPageContext, location: RepoLocation) -> tuple[str, ...]:
    """The paths that everyone who can see a gated repo may read at this revision."""
    at_head = await lookup.is_branch_or_tag_head(base.repos, location.repo, location.revision)
    return READABLE_BEFORE_GATE if at_head else ()


async def view_of(base: RepoPageContext, location: RepoLocation, entry: TreeEntry, *, plain: bool) -> FileView:
    if is_image(location.path):
        return FileView(image=location.to("resolve", location.path))
    if entry.pointer:
        return FileView(reason="Large files are not shown here.")
    if entry.size > LARGEST_TEXT:
        return FileView(reason="Too large to show here.")
    content = await objects.small_blob(base.repos.folders.of(location.repo.id), entry.sha)
    return await in_text_thread(_view, content, location, plain)


def _view(content: bytes, location: RepoLocation, plain: bool) -> FileView:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        return FileView(reason="Not text.")
    if not text:
        return FileView(reason="Empty.", is_text=True)
    if _has_extension(location.path, EXTENSIONS) and not plain:
        document = DocumentLocation(location.repo.path, location.rev, location.path.rpartition("/")[0])
        return FileView(markdown=render_markdown(split_readme(text)[1], document), is_text=True)
    lines = re.split(r"\r\n|\n|\r", _BIDI_CONTROLS.sub(_spell_out, text))
    if lines and not lines[-1]:
        lines.pop()
    if len(lines) > MAX_LINES:
        return FileView(reason=f"More than {MAX_LINES:,} lines: too many to show here.", is_text=True)
    return FileView(lines=tuple(lines), has_bidi_controls=_BIDI_CONTROLS.search(text) is not None, is_text=True)


def _spell_out(match: re.Match[str]) -> str:
    return f"[{unicodedata.name(match[0])}]"


def _has_extension(path: str, extensions: tuple[str, ...]) -> bool:
    return path.lower().endswith(extensions)
