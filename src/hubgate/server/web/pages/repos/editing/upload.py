"""`/upload/{rev}/{folder}`: upload files. They are written to disk while they are received, and stored like files that
existing clients upload: large ones outside git.
"""

from hubgate.server.edge.routes import Route
from hubgate.server.errors import BadRequest, FieldErrors, HubError
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.hub.commits.model import CommitResult
from hubgate.server.hub.commits.uploaded_files import UploadedFiles
from hubgate.server.hub.git.threads import in_thread
from hubgate.server.web.api.repos.uploads import COMMIT_SECONDS, LARGEST_COMMIT
from hubgate.server.web.pages.repos.editing.commit_form import CommitFields, Editing, FormTarget, is_shown_in_form
from hubgate.server.web.pages.repos.page_context import RepoLocation

FIELD = "files"
_TEMPLATE = "upload.html"


def routes(editing: Editing) -> list[Route]:
    base = editing.base
    max_file_bytes = base.repos.regular_upload_max

    async def show(request: HubRequest, location: RepoLocation) -> Response:
        return editing.show(request, location, _TEMPLATE, None, max_file_bytes=max_file_bytes, newer=None)

    async def upload(request: HubRequest, target: FormTarget) -> Response:
        location, given = target.location, CommitFields.parse(request.form_fields)
        files = UploadedFiles(base.repos.large_files.temporary, max_file_bytes)
        try:
            await editing.check_destination(target)
            result = await receive_and_commit(request, target, given, files)
        except HubError as error:
            if not is_shown_in_form(error):
                raise
            # Browsers show an answer only once they have sent the whole form.
            await request.form_files.skip_rest()
            newer = await editing.newer_changes(request, location.repo, given.seen, error)
            return editing.show(
                request, location, _TEMPLATE, given, error, FIELD, max_file_bytes=max_file_bytes, newer=newer
            )
        finally:
            await in_thread(files.clean_up)
        response = editing.redirect(target, result, location.to("tree", location.path))
        if request.headers.get("x-requested-with") == "XMLHttpRequest":
            # The script opens the address itself: following a redirect would use up the message for the next page.
            response.status_code = 201
        return response

    async def receive_and_commit(
        request: HubRequest, target: FormTarget, given: CommitFields, files: UploadedFiles
    ) -> CommitResult:
        folder = f"{target.location.path}/" if target.location.path else ""
        form = request.form_files
        while (part := await form.next_file()) is not None:
            if part.field != FIELD:
                raise BadRequest(f"Unknown field of files: {part.field[:60]}.")
            # A browser sends an empty name if no file was chosen.
            if part.name:
                await files.receive(folder + part.name, form.content())
        if not files.operations:
            raise FieldErrors({FIELD: "Choose a file."})
        first, count = files.operations[0].path, len(files.operations)
        summary = f"Upload {first.rpartition('/')[2]}" if count == 1 else f"Upload {count:,} files"
        return await editing.apply_after_upload(request, target, given.change(files.operations, summary))

    tail = "/upload/{rest:path}"
    return [
        *base.routes("GET", tail, editing.page_endpoint(show), "The form that uploads files to a repo"),
        *base.routes(
            "POST",
            tail,
            editing.form_endpoint(upload),
            "Upload files to a repo",
            body_cap=LARGEST_COMMIT,
            body_seconds=COMMIT_SECONDS,
            has_files=True,
            streams=True,
        ),
    ]
