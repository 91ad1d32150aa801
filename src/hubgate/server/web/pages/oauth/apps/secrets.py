"""A new secret for an app, the end of an old one, and none at all."""

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from hubgate.server.accounts import form_once
from hubgate.server.accounts.form_once import AlreadyUsed
from hubgate.server.edge.routes import Route
from hubgate.server.errors import FieldErrors
from hubgate.server.http.request import HubRequest
from hubgate.server.oauth.apps import owning
from hubgate.server.oauth.exchange import live
from hubgate.server.oauth.exchange.model import Which
from hubgate.server.storage.database import Tx
from hubgate.server.web.app_owner import Desk
from hubgate.server.web.pages.oauth.apps.form import OVERLAPS
from hubgate.server.web.pages.oauth.apps.frame import ONE, Frame
from hubgate.server.web.rendering import NO_ERRORS

_SECRET = f"{ONE}/secret"


def routes(frame: Frame) -> list[Route]:
    async def show(request: HubRequest, desk: Desk, errors: Mapping[str, str] = NO_ERRORS, **values: Any) -> Response:
        app = await frame.app(request, desk)
        return frame.show(
            request,
            desk,
            "secret.html",
            errors,
            app=app,
            at=desk.at(app.client_id),
            overlaps=OVERLAPS,
            once=form_once.number_for(frame.accounts, desk.user),
            live=await live.count(frame.oauth, app) if desk.organization else 0,
            **{"overlap": "0", "secret": "", "already": "", "ended": 0, "ending": False, **values},
        )

    async def ask(request: HubRequest, desk: Desk) -> Response:
        return await show(request, desk)

    async def refresh(request: HubRequest, desk: Desk) -> Response:
        app, form = await frame.app(request, desk), request.form_fields
        overlap, ending, ended = form.get("overlapSeconds", "0"), form.get("endTokens") == "on", 0

        async def end_tokens(tx: Tx) -> None:
            nonlocal ended
            ended = await live.end_in(tx, app, Which(), desk.actor, frame.oauth.clock())

        try:
            use = form_once.check_number(frame.accounts, desk.user, form.get(form_once.FIELD))
            along = end_tokens if ending and desk.organization else None
            seconds = int(overlap) if overlap in dict(OVERLAPS) else -1
            secret = await owning.refresh_secret(frame.oauth, app, seconds, desk.actor, use, along)
        except FieldErrors as error:
            return await show(request, desk, error.fields, overlap=overlap, ending=ending)
        except AlreadyUsed as error:
            return await show(request, desk, already=error.message)
        return await show(request, desk, secret=secret, overlap=overlap, ended=ended)

    async def end(request: HubRequest, desk: Desk) -> Response:
        app, last_four = await frame.app(request, desk), request.form_fields.get("lastFour")
        await owning.end_old_secret(frame.oauth, app, last_four, desk.actor)
        return frame.pages.see(desk.at(app.client_id), f"The secret that ends in {last_four} no longer works.")

    async def ask_delete(request: HubRequest, desk: Desk) -> Response:
        app = await frame.app(request, desk)
        secrets = await owning.secrets_of(frame.oauth, app)
        at = desk.at(app.client_id)
        return frame.show(request, desk, "secret_delete.html", app=app, at=at, secrets=len(secrets))

    async def delete(request: HubRequest, desk: Desk) -> Response:
        app = await owning.delete_secret(frame.oauth, await frame.app(request, desk), desk.actor)
        return frame.pages.see(desk.at(app.client_id), f"{app.name} is public. Its secret no longer works.")

    return [
        *frame.routes("GET", _SECRET, ask, "What a new secret means"),
        *frame.routes("POST", _SECRET, refresh, "Make a new secret"),
        *frame.routes("POST", f"{_SECRET}/end", end, "End an old secret"),
        *frame.routes("GET", f"{_SECRET}/delete", ask_delete, "What making an app public means"),
        *frame.routes("POST", f"{_SECRET}/delete", delete, "Make an app public"),
    ]
