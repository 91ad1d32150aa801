"""What all forms that change files share: where they commit to, the commit's message, conflicts and the redirect."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import Caller
from hubgate.server.edge.guard import Guard
from hubgate.server.edge.routes import Check, Handler, Target
from hubgate.server.errors import FieldErrors, HubError, Unprocessable
from hubgate.server.http.forms import Fields
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.hub.commits import page_changes
from hubgate.server.hub.commits.commit import commit, writable_ref
from hubgate.server.hub.commits.model import CommitRequest, CommitResult, Operation
from hubgate.server.hub.commits.page_changes import FilesChanged, PageChange
from hubgate.server.hub.commits.request_reader import check_message
from hubgate.server.hub.discussions.model import page_path
from hubgate.server.hub.discussions.pull_requests import commit_as_pull_request
from hubgate.server.hub.git import diffs
from hubgate.server.hub.git.diffs import Changes
from hubgate.server.hub.repos.model import Repo, is_pull_request
from hubgate.server.web.api.repos import destinations
from hubgate.server.web.api.repos.destinations import Destination
from hubgate.server.web.pages.repos.editing.text import with_lf
from hubgate.server.web.pages.repos.page_context import RepoLocation, RepoPageContext
from hubgate.server.web.repo_routes import EndpointForType, repo_endpoint_with_target
from hubgate.server.web.untrusted_text import clean

COMMIT, PULL_REQUEST = "commit", "pull_request"
_SHA = re.compile(r"[0-9a-f]{40}\Z")


class FormTarget(Struct, frozen=True):
    """The place that a form changes, as of now, and where its commit goes."""

    location: RepoLocation
    destination: Destination


class CommitFields(Struct, frozen=True):
    """The fields of a commit in a form. `seen` is the commit that the page showed."""

    summary: str
    description: str
    seen: str
    as_what: str = COMMIT

    @classmethod
    def parse(cls, form: Fields) -> "CommitFields":
        seen = form.get("seen")
        if not _SHA.match(seen):
            raise Unprocessable("The form is incomplete. Reload the page and try again.")
        return cls(form.get("summary").strip(), with_lf(form.get("description")), seen, as_what_of(form))

    def change(self, operations: Sequence[Operation], default_summary: str, new_path: str = "") -> PageChange:
        summary = self.summary or default_summary
        try:
            check_message(summary, self.description)
        except Unprocessable as error:
            raise FieldErrors({"summary": error.message}) from None
        return PageChange(CommitRequest(summary, self.description, operations=operations), self.seen, new_path)


def as_what_of(form: Fields) -> str:
    given = form.get("as", COMMIT)
    if given not in (COMMIT, PULL_REQUEST):
        raise Unprocessable(f"as must be {COMMIT} or {PULL_REQUEST}.")
    return given


class Editing(Struct, frozen=True):
    base: RepoPageContext
    guard: Guard

    def page_endpoint(self, handler: Handler[RepoLocation], *more: Action) -> EndpointForType:
        """Create endpoints of a page with a form, for callers who may commit here or open a pull request. `more` are
        further actions that the page needs.
        """

        async def find(request: HubRequest, repo: Repo) -> Target[RepoLocation]:
            location, resource = await self._location(request, repo), repo.as_resource()
            if is_pull_request(location.rev):
                found = await destinations.find_target(self.base.repos, repo, location.rev, as_pull_request=False)
                await destinations.ref_at(self.base.repos, found.subject)
                checks = found.further_checks
            else:
                proposes = () if repo.discussions_disabled else (Check(Action.DISCUSSION_OPEN, resource),)
                checks = ((Check(Action.REPO_WRITE, resource), *proposes),)
            return Target(location, resource, further_checks=(*checks, *_checks(repo, more)))

        return repo_endpoint_with_target(self.base.repos, (*destinations.ACTIONS, *more), find, handler)

    def form_endpoint(self, handler: Handler[FormTarget], *more: Action) -> EndpointForType:
        """Create endpoints that receive a form, with the permissions of its destination."""

        async def find(request: HubRequest, repo: Repo) -> Target[FormTarget]:
            location, as_what = await self._location(request, repo), as_what_of(request.form_fields)
            found = await destinations.find_target(
                self.base.repos, repo, location.rev, as_pull_request=as_what == PULL_REQUEST
            )
            checks = (*found.further_checks, *_checks(repo, more))
            target = FormTarget(location, found.subject)
            return Target(target, found.resource, further_checks=checks, hint=found.hint)

        return repo_endpoint_with_target(self.base.repos, (*destinations.ACTIONS, *more), find, handler)

    async def _location(self, request: HubRequest, repo: Repo) -> RepoLocation:
        location = await self.base.location(request, repo)
        writable_ref(location.revision)
        return location

    def show(
        self,
        request: HubRequest,
        location: RepoLocation,
        template: str,
        given: CommitFields | None,
        error: HubError | None = None,
        at: str = "summary",
        **values: Any,
    ) -> Response:
        """Render a form. With an error, `given` has the rejected input; an error without a field is shown at `at`."""
        errors: Mapping[str, str] = {}
        if error is not None:
            found = error.fields if isinstance(error, FieldErrors) else {at: error.message}
            # A message may contain the name of a file.
            errors = {name: clean(message) for name, message in found.items()}
        # After another error, the form still names the commit that the user saw: newer changes were not shown.
        seen = error.head if isinstance(error, FilesChanged) else given.seen if given else location.sha
        return self.base.show(
            request,
            location.repo,
            template,
            "files",
            errors,
            error.status if error is not None else None,
            location=location,
            seen=seen,
            given_commit=given or CommitFields("", "", seen, COMMIT),
            may_commit=self._may_commit(request, location),
            may_propose=self._may_propose(request, location),
            **values,
        )

    def _may_commit(self, request: HubRequest, location: RepoLocation) -> bool:
        # The page of a pull request is shown only to callers who may commit to it.
        return is_pull_request(location.rev) or self.base.may(request, location.repo, Action.REPO_WRITE)

    def _may_propose(self, request: HubRequest, location: RepoLocation) -> bool:
        repo = location.repo
        is_branch = not is_pull_request(location.rev) and not repo.discussions_disabled
        return is_branch and self.base.may(request, repo, Action.DISCUSSION_OPEN)

    async def apply(self, target: FormTarget, caller: Caller, change: PageChange) -> CommitResult:
        """Commit the change of a form whose body was received before its permissions were checked."""
        ref = await destinations.ref_at(self.base.repos, target.destination)
        return await self._apply(target, caller, ref, change)

    async def check_destination(self, target: FormTarget) -> None:
        """Check before an upload that commits are accepted there. For a closed pull request, which accepts none, the
        edge checks no permission.
        """
        await destinations.ref_at(self.base.repos, target.destination)

    async def apply_after_upload(self, request: HubRequest, target: FormTarget, change: PageChange) -> CommitResult:
        """Commit the change of a form that took minutes to receive: session or role may be gone by now (attack O44)."""
        caller = await self.guard.session_caller(request)
        ref = await destinations.check_again(self.base.repos, caller.identity, target.destination)
        return await self._apply(target, caller, ref, change)

    async def _apply(self, target: FormTarget, caller: Caller, ref: str, change: PageChange) -> CommitResult:
        create = commit_as_pull_request if target.destination.as_pull_request else commit
        return await page_changes.apply(self.base.repos, target.location.repo, caller, ref, change, create)

    def redirect(self, target: FormTarget, result: CommitResult, address: str) -> Response:
        """Redirect to the new pull request, or to `address` after a commit."""
        repo = target.location.repo
        if result.pull_request is not None:
            return self.base.pages.redirect(
                page_path(repo, result.pull_request), f"Opened pull request #{result.pull_request}."
            )
        return self.base.pages.redirect(address, f"Committed {result.sha[:8]} to {target.location.rev}.")

    async def newer_changes(self, request: HubRequest, repo: Repo, seen: str, error: HubError) -> Changes | None:
        """What other commits changed since the page was opened, if that is why a form is rejected. Nothing for callers
        who may open a pull request, but not read the files of a gated repo.
        """
        if not isinstance(error, FilesChanged) or not self.base.may(request, repo, Action.REPO_READ_CONTENT):
            return None
        before = await page_changes.seen_commit(self.base.repos, repo, seen)
        if before is None:
            return None
        folder = self.base.repos.folders.of(repo.id)
        return await diffs.changes_of_paths(folder, before, error.head, error.paths)


def _checks(repo: Repo, actions: Sequence[Action]) -> list[tuple[Check, ...]]:
    return [(Check(action, repo.as_resource()),) for action in actions]


def is_shown_in_form(error: HubError) -> bool:
    """Whether an error is shown above the form, so that no input is lost. Failures of the hub are logged instead."""
    return error.status < 500
