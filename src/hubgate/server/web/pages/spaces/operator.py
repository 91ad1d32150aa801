"""`/operator/spaces`: what runs on this hub, what it uses, and the operator's decisions about it."""

import re

from hubgate.server.access.caller import actor_of
from hubgate.server.edge.routes import Route
from hubgate.server.errors import NotFound, Unprocessable
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.hub.context import Repos
from hubgate.server.hub.repos import store as repo_store
from hubgate.server.hub.repos.model import Repo, RepoType
from hubgate.server.oauth.context import OAuth
from hubgate.server.spaces import management, store
from hubgate.server.spaces.context import Spaces
from hubgate.server.spaces.model import SHORTEST_SLEEP_SECONDS
from hubgate.server.web.pages.listing import return_address
from hubgate.server.web.pages.operator.frame import OperatorPages, operator_route
from hubgate.server.web.rendering import Pages

_PATH = "/operator/spaces"
_PAGE_SIZE = 50
_HOUR = 3600
_LONGEST_HOURS = 24 * 3650
_HOURS = re.compile(r"[0-9]{1,6}(\.[0-9]{1,8})?\Z")


def routes(pages: Pages, oauth: OAuth, repos: Repos, spaces: Spaces) -> list[Route]:
    frame = OperatorPages(pages, oauth)

    async def show(request: HubRequest) -> Response:
        query = request.query()
        after, running = query.get("after", ""), query.get("show") != "all"
        found = await spaces.db.read_long(lambda tx: store.overview(tx, after, _PAGE_SIZE + 1, running=running))
        shown = found[:_PAGE_SIZE]
        address = _PATH if running else f"{_PATH}?show=all"
        following = f"{address}{'?' if running else '&'}after={shown[-1][1].repo_id}" if len(found) > len(shown) else ""
        return await frame.page(
            request,
            "spaces.html",
            _PATH,
            spaces=shown,
            running=running,
            first=address if after else "",
            next=following,
            settings=pages.settings,
        )

    async def find(request: HubRequest) -> Repo:
        owner, name = request.param("namespace"), request.param("repo")
        repo = await repo_store.named(repos.db, RepoType.SPACE.value, owner, name)
        if repo is None:
            raise NotFound("Space not found.")
        return repo

    async def stop(request: HubRequest) -> Response:
        repo = await find(request)
        await management.stop(spaces, repo, actor_of(request))
        return pages.redirect(return_address(request, _PATH), f"Stopped {repo.full_name}.")

    async def start(request: HubRequest) -> Response:
        repo = await find(request)
        await management.start(spaces, repo, actor_of(request))
        return pages.redirect(return_address(request, _PATH), f"Started {repo.full_name}.")

    async def set_sleep_time(request: HubRequest) -> Response:
        repo = await find(request)
        seconds = _seconds(request.form_fields.get("hours").strip())
        await management.allow_sleep_time(spaces, repo, seconds, actor_of(request))
        return pages.redirect(return_address(request, _PATH), f"Saved the sleep time of {repo.full_name}.")

    one = _PATH + "/{namespace}/{repo}"
    return [
        operator_route("GET", _PATH, show, "Spaces that run"),
        operator_route("POST", f"{one}/stop", stop, "Stop a Space"),
        operator_route("POST", f"{one}/start", start, "Start a Space that was stopped"),
        operator_route("POST", f"{one}/sleep", set_sleep_time, "Set when a Space sleeps, without a limit"),
    ]


def _seconds(hours: str) -> int | None:
    """The number of seconds; None, for never, if the field is empty."""
    if not hours:
        return None
    seconds = round(float(hours) * _HOUR) if _HOURS.match(hours) else 0
    if not SHORTEST_SLEEP_SECONDS <= seconds <= _LONGEST_HOURS * _HOUR:
        raise Unprocessable(
            f"The sleep time is a number of hours, such as 12 or 0.5, up to {_LONGEST_HOURS:,}, or empty for never."
        )
    return seconds
