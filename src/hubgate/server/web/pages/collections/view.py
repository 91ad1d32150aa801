"""A collection with its items, and the forms that add, annotate, move and remove items."""

from collections.abc import Mapping

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import caller_of
from hubgate.server.edge.routes import Route
from hubgate.server.errors import Conflict, FieldErrors, Unprocessable
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.hub.collections import items, reading
from hubgate.server.hub.collections.model import Collection
from hubgate.server.web.collection_routes import REPO_TYPES, visible_item
from hubgate.server.web.pages.collections.page_context import CollectionPageContext
from hubgate.server.web.pages.listing import list_page, return_address
from hubgate.server.web.rendering import NO_ERRORS

ITEM_TYPES = [*((kind, kind.capitalize()) for kind in REPO_TYPES), ("collection", "Collection")]


def routes(base: CollectionPageContext) -> list[Route]:
    repos = base.repos

    async def render(request: HubRequest, collection: Collection, errors: Mapping[str, str] = NO_ERRORS) -> Response:
        found = await reading.with_items(repos, caller_of(request).identity, collection)
        form = request.form_fields if errors else None
        given = {name: form.get(name) if form else "" for name in ("type", "id", "note")}
        page = list_page(request, found.items)
        return base.show(request, collection, "collection.html", errors, page=page, item_types=ITEM_TYPES, given=given)

    async def show(request: HubRequest, collection: Collection) -> Response:
        return await render(request, collection)

    async def add(request: HubRequest, collection: Collection) -> Response:
        form = request.form_fields
        item_type, item_id = form.get("type"), _without_prefix(form.get("id"), repos.base_url)
        target = await visible_item(repos, caller_of(request).identity, item_type, item_id)
        if target is None:
            return await render(
                request, collection, {"id": f"There is no such {item_type[:20]}, or you may not see it."}
            )
        try:
            await items.add(repos, collection, target, form.get("note"))
        except (Conflict, FieldErrors) as error:
            errors = error.fields if isinstance(error, FieldErrors) else {"id": error.message}
            return await render(request, collection, errors)
        return base.pages.redirect(collection.path, f"Added {item_id}.")

    async def annotate(request: HubRequest, collection: Collection) -> Response:
        return await update(request, collection, "Note saved.", note=request.form_fields.get("note"))

    async def move(request: HubRequest, collection: Collection) -> Response:
        position = request.form_fields.get("position")
        if not position.isascii() or not position.isdigit() or len(position) > 6:
            raise Unprocessable("position must be a whole number from 0.")
        return await update(request, collection, "Moved.", place=int(position))

    async def update(
        request: HubRequest, collection: Collection, done: str, note: str | None = None, place: int | None = None
    ) -> Response:
        identity = caller_of(request).identity
        await items.update(repos, identity, collection, request.param("item"), note, place)
        return base.pages.redirect(return_address(request, collection.path), done)

    async def remove(request: HubRequest, collection: Collection) -> Response:
        await items.remove(repos, caller_of(request).identity, collection, request.param("item"))
        return base.pages.redirect(return_address(request, collection.path), "Removed.")

    write = Action.COLLECTION_WRITE
    return [
        base.route("GET", "", Action.COLLECTION_READ, show, "A collection"),
        base.route("POST", "/items", write, add, "Add an item to a collection"),
        base.route("POST", "/items/{item}/note", write, annotate, "Change the note of an item"),
        base.route("POST", "/items/{item}/move", write, move, "Change the place of an item"),
        base.route("POST", "/items/{item}/remove", write, remove, "Remove an item from a collection"),
    ]


def _without_prefix(text: str, base_url: str) -> str:
    """The name of a repo or the slug of a collection, even if the text is the address of its page."""
    address = text.strip().removeprefix(f"{base_url}/")
    for prefix in ("datasets/", "spaces/", "collections/"):
        address = address.removeprefix(prefix)
    return address
