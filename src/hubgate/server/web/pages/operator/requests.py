"""`/operator/requests`: requests from app owners, which the operator grants or refuses."""

from hubgate.server.access.caller import actor_of
from hubgate.server.edge.routes import PublicHandler, Route
from hubgate.server.errors import Conflict, Unprocessable
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.oauth.operator_requests import decision
from hubgate.server.web.pages.operator.frame import OperatorPages, operator_route

_PATH = "/operator/requests"
_TEMPLATE = "requests.html"


def routes(frame: OperatorPages) -> list[Route]:
    oauth = frame.oauth

    async def show(request: HubRequest) -> Response:
        return await frame.page(request, _TEMPLATE, _PATH, requests=await decision.list_all(oauth))

    def decision_handler(granted: bool) -> PublicHandler:
        async def decide(request: HubRequest) -> Response:
            app_request = await decision.get(oauth, request.param("id"))
            try:
                await decision.decide(oauth, app_request, granted, actor_of(request))
            except (Conflict, Unprocessable) as error:
                requests = await decision.list_all(oauth)
                return await frame.show_errors(
                    request, _TEMPLATE, _PATH, error, f"request-{app_request.id}", requests=requests
                )
            word = "Granted" if granted else "Refused"
            return frame.pages.redirect(_PATH, f"{word}: {app_request.description} for {app_request.app_name}.")

        return decide

    return [
        operator_route("GET", _PATH, show, "Requests from app owners"),
        operator_route("POST", _PATH + "/{id}/grant", decision_handler(True), "Grant a request"),
        operator_route("POST", _PATH + "/{id}/refuse", decision_handler(False), "Refuse a request"),
    ]
