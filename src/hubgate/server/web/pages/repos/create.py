"""`/new`, `/new-dataset`, `/new-space`: the forms that create a repo."""

from collections.abc import Mapping
from functools import partial

from msgspec import Struct

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import Caller, actor_of, caller_of
from hubgate.server.access.resource import Account, Organization
from hubgate.server.edge.routes import KIB, Endpoint, Locator, Route, Target, own
from hubgate.server.errors import Unprocessable
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.http.surface import Surface
from hubgate.server.hub.repos import creation
from hubgate.server.hub.repos.model import RepoOwner, RepoType
from hubgate.server.web.pages.repos.page_context import RepoPageContext
from hubgate.server.web.rendering import NO_ERRORS
from hubgate.server.web.repo_targets import namespace_choices, namespace_owner

PATHS = {RepoType.MODEL: "/new", RepoType.DATASET: "/new-dataset", RepoType.SPACE: "/new-space"}
LICENSES = (
    ("", "None yet"),
    ("apache-2.0", "Apache 2.0"),
    ("mit", "MIT"),
    ("bsd-3-clause", "BSD 3-Clause"),
    ("gpl-3.0", "GPL 3.0"),
    ("openrail", "OpenRAIL"),
    ("cc-by-4.0", "CC BY 4.0"),
    ("cc-by-sa-4.0", "CC BY-SA 4.0"),
    ("cc-by-nc-4.0", "CC BY-NC 4.0"),
    ("cc0-1.0", "CC0 1.0"),
    ("other", "Other"),
)
SDKS = (
    ("static", "Static files"),
    ("python", "Python"),
    ("gradio", "Gradio"),
    ("streamlit", "Streamlit"),
    ("docker", "Docker"),
)


class RepoForm(Struct, frozen=True):
    """The values in the form."""

    owner: str
    name: str = ""
    visibility: str = "public"
    license: str = ""
    sdk: str = SDKS[0][0]


def routes(base: RepoPageContext) -> list[Route]:
    def show(
        request: HubRequest, kind: RepoType, form_values: RepoForm, errors: Mapping[str, str] = NO_ERRORS
    ) -> Response:
        return base.pages.page(
            request,
            "repo/new.html",
            errors=errors,
            kind=kind,
            paths=[(path, other.value.capitalize()) for other, path in PATHS.items()],
            path=PATHS[kind],
            owners=namespace_choices(caller_of(request).signed_in_person),
            form_values=form_values,
            licenses=LICENSES,
            sdks=SDKS,
        )

    async def show_form(request: HubRequest, caller: Caller, kind: RepoType) -> Response:
        return show(request, kind, RepoForm(request.query().get("owner") or caller.user.name))

    async def find_owner(request: HubRequest) -> Target[RepoOwner]:
        owner = await namespace_owner(base.repos, _owner_name(request))
        return Target(owner, owner.namespace)

    async def create(request: HubRequest, owner: RepoOwner, kind: RepoType) -> Response:
        form = request.form_fields
        name, visibility = form.get("name").strip(), form.get("visibility")
        form_values = RepoForm(_owner_name(request), name, visibility, form.get("license"), form.get("sdk"))
        new_repo = creation.NewRepo(
            type=kind,
            name=form_values.name,
            private=form_values.visibility == "private",
            sdk=_one_of(SDKS, form_values.sdk) if kind is RepoType.SPACE else "",
            license=_one_of(LICENSES, form_values.license),
        )
        try:
            repo = await creation.create(base.repos, caller_of(request).user, owner, new_repo, actor_of(request))
        except creation.NameTaken as taken:
            message = taken.message if taken.is_redirect else f"{owner.name}/{form_values.name} is taken."
            return show(request, kind, form_values, {"name": message})
        except Unprocessable as error:
            return show(request, kind, form_values, {"name": error.message})
        return base.pages.redirect(repo.path, f"Created {repo.full_name}.")

    def routes_for(kind: RepoType, path: str) -> list[Route]:
        form = own(Action.REPO_CREATE, partial(show_form, kind=kind))
        endpoint = Endpoint(
            Action.REPO_CREATE, Locator((Account, Organization), find_owner), partial(create, kind=kind)
        )
        return [
            Route("GET", path, form, Surface.PAGE, f"The form for a new {kind.value}"),
            Route("POST", path, endpoint, Surface.PAGE, f"Create a {kind.value}", body_cap=16 * KIB),
        ]

    return [route for kind, path in PATHS.items() for route in routes_for(kind, path)]


def _owner_name(request: HubRequest) -> str:
    """The owner in the form, by default the caller. Raises for a visitor, who then has to sign in."""
    own_name = caller_of(request).user.name
    return request.form_fields.get("owner") or own_name


def _one_of(choices: tuple[tuple[str, str], ...], given: str) -> str:
    """Reject a value that the form does not offer."""
    if given not in (value for value, _ in choices):
        raise Unprocessable(f"Choose one of {', '.join(label for _, label in choices)}.")
    return given
