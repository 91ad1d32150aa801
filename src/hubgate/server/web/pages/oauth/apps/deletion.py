"""Deleting an app: the page lists the consequences and asks for the app's name as confirmation."""

from collections.abc import Mapping

from starlette.responses import Response

from hubgate.server.edge.routes import Route
from hubgate.server.http.request import HubRequest
from hubgate.server.oauth.apps import management
from hubgate.server.web.owner_routes import OwnerContext
from hubgate.server.web.pages.oauth.apps.frame import ONE, Frame
from hubgate.server.web.rendering import NO_ERRORS

_PATH = f"{ONE}/delete"


def routes(frame: Frame) -> list[Route]:
    async def ask(
        request: HubRequest, context: OwnerContext, errors: Mapping[str, str] = NO_ERRORS, typed: str = ""
    ) -> Response:
        app = await frame.app(request, context)
        users = await management.count_users(frame.oauth, app)
        at = context.at(app.client_id)
        return frame.show(request, context, "delete.html", errors, app=app, at=at, users=users.total, typed=typed)

    async def delete(request: HubRequest, context: OwnerContext) -> Response:
        app, typed = await frame.app(request, context), " ".join(request.form_fields.get("name").split())
        if typed != app.name:
            return await ask(request, context, {"name": f"Type {app.name}, as it is written here."}, typed)
        await management.delete(frame.oauth, app, context.actor)
        return frame.pages.redirect(context.root, f"Deleted {app.name}.")

    return [
        *frame.routes("GET", _PATH, ask, "What deleting an app means"),
        *frame.routes("POST", _PATH, delete, "Delete an app"),
    ]
