"""`/collections/new`: the form that creates a collection."""

from collections.abc import Mapping

from msgspec import Struct

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import Caller, actor_of, caller_of
from hubgate.server.access.resource import Account, Organization
from hubgate.server.accounts.model import Person
from hubgate.server.edge.routes import KIB, Endpoint, Locator, Route, Target, own
from hubgate.server.errors import FieldErrors
from hubgate.server.http.forms import Fields
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.http.surface import Surface
from hubgate.server.hub.collections import changes
from hubgate.server.hub.collections.changes import NewCollection, TitleTaken
from hubgate.server.hub.collections.model import THEMES
from hubgate.server.hub.repos.model import RepoOwner
from hubgate.server.web.collection_routes import new_collection_owner
from hubgate.server.web.pages.collections.page_context import LIST, CollectionPageContext
from hubgate.server.web.rendering import NO_ERRORS

NEW = LIST + "/new"
THEME_CHOICES = [(theme, theme.capitalize()) for theme in THEMES]


class CollectionForm(Struct, frozen=True):
    """The values of the form that creates or changes a collection."""

    title: str = ""
    description: str = ""
    theme: str = THEMES[0]
    visibility: str = "public"

    @classmethod
    def of(cls, fields: Fields) -> "CollectionForm":
        return cls(fields.get("title"), fields.get("description"), fields.get("theme"), fields.get("visibility"))

    @property
    def private(self) -> bool:
        return self.visibility == "private"


def routes(base: CollectionPageContext) -> list[Route]:
    def show(
        request: HubRequest, owner: str, form_values: CollectionForm, errors: Mapping[str, str] = NO_ERRORS
    ) -> Response:
        return base.pages.page(
            request,
            "collections/new.html",
            errors=errors,
            path=NEW,
            owners=_owner_choices(caller_of(request).signed_in_person),
            owner=owner,
            form_values=form_values,
            themes_offered=THEME_CHOICES,
        )

    async def show_form(request: HubRequest, caller: Caller) -> Response:
        return show(request, request.query().get("owner") or caller.user.name, CollectionForm())

    async def find_owner(request: HubRequest) -> Target[RepoOwner]:
        own_name = caller_of(request).user.name
        owner = await new_collection_owner(base.repos, request.form_fields.get("owner") or own_name)
        return Target(owner, owner.namespace)

    async def create(request: HubRequest, owner: RepoOwner) -> Response:
        given = CollectionForm.of(request.form_fields)
        requested = NewCollection(given.title, given.description, given.private, given.theme or THEMES[0])
        try:
            created = await changes.create(base.repos, owner, requested, actor_of(request))
        except (TitleTaken, FieldErrors) as error:
            return show(request, owner.name, given, errors_by_field(error))
        return base.pages.redirect(created.path, f"Created {created.title}.")

    create_endpoint = Endpoint(Action.COLLECTION_CREATE, Locator((Account, Organization), find_owner), create)
    return [
        Route("GET", NEW, own(Action.COLLECTION_CREATE, show_form), Surface.PAGE, "The form for a new collection"),
        Route("POST", NEW, create_endpoint, Surface.PAGE, "Create a collection", body_cap=16 * KIB),
    ]


def errors_by_field(error: TitleTaken | FieldErrors) -> Mapping[str, str]:
    """The messages for the fields of the form."""
    return error.fields if isinstance(error, FieldErrors) else {"title": error.message}


def _owner_choices(person: Person) -> list[tuple[str, str]]:
    """The namespaces in which a user may create collections."""
    required = Action.COLLECTION_CREATE.rule.role
    names = [found.organization.name for found in person.memberships if required is None or found.role >= required]
    return [(name, name) for name in (person.user.name, *names)]
