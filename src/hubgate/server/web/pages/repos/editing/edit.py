"""`/new/{rev}/{folder}`: add a text file. `/edit/{rev}/{path}`: edit and rename a file; a file that is not text, or too
long for a form, can only be renamed.
"""

import contextlib
from collections.abc import AsyncIterator

from msgspec import Struct
from pygit2.enums import FileMode

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import caller_of
from hubgate.server.edge.routes import MIB, Route
from hubgate.server.errors import FieldErrors, HubError, NotFound
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.hub.commits import page_changes
from hubgate.server.hub.commits.model import AddFile, AddLargeFile, Content
from hubgate.server.hub.commits.renames import renamed_file
from hubgate.server.hub.git import objects
from hubgate.server.hub.git.objects import EntryType, TreeEntry
from hubgate.server.hub.git.paths import path_error
from hubgate.server.web.pages.repos.editing.commit_form import CommitFields, Editing, FormTarget, is_shown_in_form
from hubgate.server.web.pages.repos.editing.text import LARGEST_TEXT, EditableText, read_text, with_lf
from hubgate.server.web.pages.repos.page_context import RepoLocation

# A line break of a text has six bytes in a form.
FORM_CAP = 2 * MIB
_READS = Action.REPO_READ_CONTENT


class OpenFile(Struct, frozen=True):
    """A file in the form; `text` is None if it cannot be edited as text."""

    entry: TreeEntry
    text: EditableText | None


def routes(editing: Editing) -> list[Route]:
    return [*_new_routes(editing), *_edit_routes(editing)]


def _new_routes(editing: Editing) -> list[Route]:
    def prefix(location: RepoLocation) -> str:
        return f"{location.path}/" if location.path else ""

    async def show(request: HubRequest, location: RepoLocation) -> Response:
        path = prefix(location) + request.query().get("name", "")
        return editing.show(request, location, "file_new.html", None, path=path, content="")

    async def add(request: HubRequest, target: FormTarget) -> Response:
        form, location = request.form_fields, target.location
        path, content = form.get("path").strip(), form.get("content")
        given = CommitFields.parse(form)
        try:
            data = _checked_content(EditableText(), content)
            _check_path(path)
            operation = AddFile(path, Content(len(data), data))
            change = given.change([operation], f"Add {_name(path)}", new_path=path)
            result = await editing.apply(target, caller_of(request), change)
        except HubError as error:
            if not is_shown_in_form(error):
                raise
            shown = with_lf(content)
            return editing.show(request, location, "file_new.html", given, error, "path", path=path, content=shown)
        return editing.redirect(target, result, location.to("blob", path))

    base, tail = editing.base, "/new/{rest:path}"
    return [
        *base.routes("GET", tail, editing.page_endpoint(show), "The form that adds a file to a repo"),
        *base.routes("POST", tail, editing.form_endpoint(add), "Add a file to a repo", body_cap=FORM_CAP),
    ]


def _edit_routes(editing: Editing) -> list[Route]:
    async def open_file(location: RepoLocation) -> OpenFile | None:
        """The file at this place; None if there is no file that a form can change."""
        folder = editing.base.repos.folders.of(location.repo.id)
        entry = await objects.entry_at(folder, location.sha, location.path) if location.path else None
        if entry is None or entry.type is not EntryType.FILE or entry.mode == FileMode.LINK:
            return None
        if entry.pointer is not None or entry.size > LARGEST_TEXT:
            return OpenFile(entry, None)
        return OpenFile(entry, read_text(await objects.small_blob(folder, entry.sha)))

    async def show(request: HubRequest, location: RepoLocation) -> Response:
        found = await open_file(location)
        if found is None:
            raise NotFound(f"File {location.path[:200]} not found at {location.rev[:100]}, or it cannot be edited.")
        return editing.show(
            request,
            location,
            "file_edit.html",
            None,
            path=location.path,
            content=found.text.text if found.text else None,
            is_mixed=found.text is not None and found.text.is_mixed,
            newer=None,
        )

    async def save(request: HubRequest, target: FormTarget) -> Response:
        form, location = request.form_fields, target.location
        # Not stripped: a name may begin or end with a space.
        path, given = form.get("path"), CommitFields.parse(form)
        content = form.get("content") if form.all("content") else None
        try:
            async with _operation(editing, location, await open_file(location), given.seen, path, content) as operation:
                is_rename = operation.old_path is not None
                summary = f"Rename {_name(location.path)} to {_name(path)}" if is_rename else f"Update {_name(path)}"
                change = given.change([operation], summary, new_path=path if path != location.path else "")
                result = await editing.apply(target, caller_of(request), change)
        except HubError as error:
            if not is_shown_in_form(error):
                raise
            return editing.show(
                request,
                location,
                "file_edit.html",
                given,
                error,
                "content" if content is not None else "path",
                path=path,
                content=with_lf(content) if content is not None else None,
                is_mixed=False,
                newer=await editing.newer_changes(request, location.repo, given.seen, error),
            )
        return editing.redirect(target, result, location.to("blob", path))

    base, tail = editing.base, "/edit/{rest:path}"
    return [
        *base.routes("GET", tail, editing.page_endpoint(show, _READS), "The form that edits a file of a repo"),
        *base.routes("POST", tail, editing.form_endpoint(save, _READS), "Edit a file of a repo", body_cap=FORM_CAP),
    ]


@contextlib.asynccontextmanager
async def _operation(
    editing: Editing, location: RepoLocation, found: OpenFile | None, seen: str, path: str, content: str | None
) -> AsyncIterator[AddFile | AddLargeFile]:
    """The change of a form: new content, a new path, or both. A temporary file exists as long as the context."""
    repos, repo = editing.base.repos, location.repo
    await page_changes.check_unchanged(repos, repo, seen, location.sha, [location.path])
    _check_path(path)
    old_path = location.path if found is not None and path != location.path else None
    if content is not None:
        text = found.text if found is not None and found.text is not None else EditableText()
        data = _checked_content(text, content)
        if found is not None and old_path is None and with_lf(content) == text.text:
            raise FieldErrors({"content": "Nothing has changed. Edit the text or the path, or go back."})
        yield AddFile(path, Content(len(data), data), old_path)
        return
    if found is None:
        raise NotFound(f"File {location.path[:200]} not found at {location.rev[:100]}.")
    if old_path is None:
        raise FieldErrors({"path": "Nothing has changed. Enter another path, or go back."})
    async with renamed_file(repos, repo, found.entry, path) as operation:
        yield operation


def _checked_content(text: EditableText, submitted: str) -> bytes:
    data = text.file_content(submitted)
    if len(data) > LARGEST_TEXT:
        raise FieldErrors({"content": f"A text may have at most {LARGEST_TEXT:,} bytes here. Upload it as a file."})
    return data


def _check_path(path: str) -> None:
    refusal = path_error(path)
    if refusal is not None:
        raise FieldErrors({"path": refusal.message if path else "Enter the name of the file."})


def _name(path: str) -> str:
    return path.rpartition("/")[2]
