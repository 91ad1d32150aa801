"""`/settings` of a collection, and its deletion, which the user confirms."""

from collections.abc import Mapping

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import actor_of, caller_of
from hubgate.server.edge.routes import Route
from hubgate.server.errors import FieldErrors
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.hub.collections import changes, reading
from hubgate.server.hub.collections.changes import CollectionChanges, TitleTaken
from hubgate.server.hub.collections.model import Collection
from hubgate.server.web.pages.collections.create import THEME_CHOICES, CollectionForm, errors_by_field
from hubgate.server.web.pages.collections.page_context import CollectionPageContext
from hubgate.server.web.rendering import NO_ERRORS


def routes(base: CollectionPageContext) -> list[Route]:
    def render(
        request: HubRequest,
        collection: Collection,
        form_values: CollectionForm,
        errors: Mapping[str, str] = NO_ERRORS,
    ) -> Response:
        return base.show(
            request, collection, "settings.html", errors, form_values=form_values, themes_offered=THEME_CHOICES
        )

    async def show(request: HubRequest, collection: Collection) -> Response:
        visibility = "private" if collection.private else "public"
        values = CollectionForm(collection.title, collection.description, collection.theme, visibility)
        return render(request, collection, values)

    async def save(request: HubRequest, collection: Collection) -> Response:
        given = CollectionForm.of(request.form_fields)
        requested = CollectionChanges(given.title, given.description, given.private, given.theme)
        try:
            changed = await changes.update(base.repos, collection, requested, actor_of(request))
        except (TitleTaken, FieldErrors) as error:
            return render(request, collection, given, errors_by_field(error))
        return base.pages.redirect(f"{changed.path}/settings", "Saved.")

    async def confirm(request: HubRequest, collection: Collection) -> Response:
        found = await reading.with_items(base.repos, caller_of(request).identity, collection)
        return base.show(request, collection, "delete.html", items=len(found.items))

    async def delete(request: HubRequest, collection: Collection) -> Response:
        await changes.delete(base.repos, collection, actor_of(request))
        return base.pages.redirect(f"/{collection.owner_name}", f"Deleted {collection.title}.")

    write, tail = Action.COLLECTION_WRITE, "/settings"
    return [
        base.route("GET", tail, write, show, "The settings of a collection"),
        base.route("POST", tail, write, save, "Change a collection"),
        base.route("GET", tail + "/delete", write, confirm, "Confirm the deletion of a collection"),
        base.route("POST", tail + "/delete", write, delete, "Delete a collection"),
    ]
