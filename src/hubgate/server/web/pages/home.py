"""The front door."""

from starlette.responses import Response

from hubgate.server.http.request import HubRequest
from hubgate.server.http.routes import Route
from hubgate.server.http.surface import Surface
from hubgate.server.web.rendering import Pages


def routes(pages: Pages) -> list[Route]:
    async def home(request: HubRequest) -> Response:
        return pages.page(request, "home.html")

    return [Route("GET", "/", home, Surface.PAGE, "hub.public", "Home")]
