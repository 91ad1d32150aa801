"""Deleting an app: what goes with it, then its name as proof that it is meant."""

from collections.abc import Mapping

from starlette.responses import Response

from hubgate.server.edge.routes import Route
from hubgate.server.http.request import HubRequest
from hubgate.server.oauth.apps import owning
from hubgate.server.web.app_owner import Desk
from hubgate.server.web.pages.oauth.apps.frame import ONE, Frame
from hubgate.server.web.rendering import NO_ERRORS

_PATH = f"{ONE}/delete"


def routes(frame: Frame) -> list[Route]:
    async def ask(request: HubRequest, desk: Desk, errors: Mapping[str, str] = NO_ERRORS, typed: str = "") -> Response:
        app = await frame.app(request, desk)
        users = await owning.users_of(frame.oauth, app)
        at = desk.at(app.client_id)
        return frame.show(request, desk, "delete.html", errors, app=app, at=at, users=users.total, typed=typed)

    async def delete(request: HubRequest, desk: Desk) -> Response:
        app, typed = await frame.app(request, desk), " ".join(request.form_fields.get("name").split())
        if typed != app.name:
            return await ask(request, desk, {"name": f"Type {app.name}, as it is written here."}, typed)
        await owning.delete(frame.oauth, app, desk.actor)
        return frame.pages.see(desk.root, f"Deleted {app.name}.")

    return [
        *frame.routes("GET", _PATH, ask, "What deleting an app means"),
        *frame.routes("POST", _PATH, delete, "Delete an app"),
    ]
