"""Requests of app owners, which the operator grants or refuses."""

from typing import Any

from starlette.responses import Response

from hubgate.server.access.caller import actor_of
from hubgate.server.edge.routes import PublicHandler, Route
from hubgate.server.errors import Conflict, Unprocessable
from hubgate.server.http.request import HubRequest
from hubgate.server.oauth.context import OAuth
from hubgate.server.oauth.requests import decision
from hubgate.server.web.pages.operator.route import operator_route
from hubgate.server.web.rendering import Pages

_PATH = "/operator/requests"


def routes(pages: Pages, oauth: OAuth) -> list[Route]:
    async def values() -> dict[str, Any]:
        return {"section": _PATH, "requests": await decision.every(oauth)}

    async def show(request: HubRequest) -> Response:
        return pages.page(request, "operator/requests.html", **await values())

    def decision_handler(granted: bool) -> PublicHandler:
        async def decide(request: HubRequest) -> Response:
            app_request = await decision.get(oauth, request.param("id"))
            try:
                await decision.decide(oauth, app_request, granted, actor_of(request))
            except (Conflict, Unprocessable) as error:
                return pages.show_errors(
                    request, "operator/requests.html", error, f"request-{app_request.id}", **await values()
                )
            word = "Granted" if granted else "Refused"
            return pages.redirect(_PATH, f"{word}: {app_request.what} for {app_request.app_name}.")

        return decide

    return [
        operator_route("GET", _PATH, show, "What app owners ask for"),
        operator_route("POST", _PATH + "/{id}/grant", decision_handler(True), "Grant what an app owner asks for"),
        operator_route("POST", _PATH + "/{id}/refuse", decision_handler(False), "Refuse what an app owner asks for"),
    ]
