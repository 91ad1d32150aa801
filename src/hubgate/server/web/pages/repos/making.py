"""`/new`, `/new-dataset`, `/new-space`: a new repo."""

from collections.abc import Mapping
from dataclasses import dataclass

from starlette.responses import Response

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import actor_of, caller_of
from hubgate.server.access.policy import require
from hubgate.server.errors import Forbidden, Unprocessable
from hubgate.server.http.request import HubRequest
from hubgate.server.http.routes import KIB, Handler, Route
from hubgate.server.http.surface import Surface
from hubgate.server.hub.repos import creating, store
from hubgate.server.hub.repos.model import RepoType
from hubgate.server.web.pages.repos.frame import Frame
from hubgate.server.web.pages.repos.owners import owners_for
from hubgate.server.web.rendering import NO_ERRORS

PATHS = {RepoType.MODEL: "/new", RepoType.DATASET: "/new-dataset", RepoType.SPACE: "/new-space"}
LICENSES = (
    ("", "None yet"),
    ("apache-2.0", "Apache 2.0"),
    ("mit", "MIT"),
    ("bsd-3-clause", "BSD, 3 clauses"),
    ("gpl-3.0", "GPL 3.0"),
    ("openrail", "OpenRAIL"),
    ("cc-by-4.0", "CC BY 4.0"),
    ("cc-by-sa-4.0", "CC BY-SA 4.0"),
    ("cc-by-nc-4.0", "CC BY-NC 4.0"),
    ("cc0-1.0", "CC0 1.0"),
    ("other", "Another"),
)
SDKS = (("static", "Static files"), ("gradio", "Gradio"), ("streamlit", "Streamlit"), ("docker", "Docker"))


@dataclass(frozen=True)
class Draft:
    """What the form says."""

    owner: str
    name: str = ""
    visibility: str = "public"
    license: str = ""
    sdk: str = SDKS[0][0]


def routes(frame: Frame) -> list[Route]:
    def show(request: HubRequest, kind: RepoType, draft: Draft, errors: Mapping[str, str] = NO_ERRORS) -> Response:
        return frame.pages.page(
            request,
            "repo/new.html",
            errors=errors,
            kind=kind,
            paths=[(path, other.value.capitalize()) for other, path in PATHS.items()],
            path=PATHS[kind],
            owners=owners_for(caller_of(request).signed_in),
            draft=draft,
            licenses=LICENSES,
            sdks=SDKS,
        )

    def asking(kind: RepoType) -> Handler:
        async def ask(request: HubRequest) -> Response:
            own = caller_of(request).user.name
            return show(request, kind, Draft(request.query().get("owner") or own))

        return ask

    def making(kind: RepoType) -> Handler:
        async def make(request: HubRequest) -> Response:
            caller, form = caller_of(request), request.form_fields
            user = caller.user
            draft = Draft(
                form.get("owner") or user.name,
                form.get("name").strip(),
                form.get("visibility"),
                form.get("license"),
                form.get("sdk"),
            )
            wanted = creating.NewRepo(
                type=kind,
                name=draft.name,
                private=draft.visibility == "private",
                sdk=_one_of(SDKS, draft.sdk) if kind is RepoType.SPACE else "",
                license=_one_of(LICENSES, draft.license),
            )
            owner = await store.owner_named(frame.repos.db, draft.owner)
            if owner is None:
                raise Forbidden(f"There is no namespace {draft.owner[:60]} that you may create repos in.")
            require(caller.identity, Action.REPO_CREATE, owner.namespace)
            try:
                repo = await creating.create(frame.repos, user, owner, wanted, actor_of(request))
            except creating.NameTaken:
                return show(request, kind, draft, {"name": f"{owner.name}/{draft.name} is taken."})
            except Unprocessable as error:
                return show(request, kind, draft, {"name": error.message})
            return frame.pages.see(repo.path, f"Created {repo.full_name}.")

        return make

    page, action = Surface.PAGE, Action.REPO_CREATE.rule.name
    return [
        route
        for kind, path in PATHS.items()
        for route in (
            Route("GET", path, asking(kind), page, action, f"The form for a new {kind.value}"),
            Route("POST", path, making(kind), page, action, f"Make a {kind.value}", body_cap=16 * KIB),
        )
    ]


def _one_of(choices: tuple[tuple[str, str], ...], given: str) -> str:
    """A choice the form does not have was not made on it."""
    if given not in (value for value, _ in choices):
        raise Unprocessable(f"Choose one of {', '.join(label for _, label in choices)}.")
    return given
