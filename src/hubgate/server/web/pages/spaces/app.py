"""`/spaces/{namespace}/{repo}/app`: the state of a Space, its logs, and buttons that restart or pause it."""

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import actor_of
from hubgate.server.edge.routes import Route
from hubgate.server.errors import BadRequest, Unprocessable
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.hub.repos.model import Repo
from hubgate.server.spaces import management
from hubgate.server.web.pages.spaces.page_context import SpacePageContext


def routes(context: SpacePageContext) -> list[Route]:
    pages, spaces = context.base.pages, context.spaces

    async def show(request: HubRequest, repo: Repo) -> Response:
        return await context.show(request, repo)

    async def live(request: HubRequest, repo: Repo) -> Response:
        """The state and new lines of a log, which the page fetches while it is open."""
        return pages.page(request, "spaces/live.html", repo=repo, **await context.live_values(request, repo))

    async def restart(request: HubRequest, repo: Repo) -> Response:
        factory = request.form_fields.get("factory") == "on"
        await management.restart(spaces, repo, actor_of(request), factory=factory)
        return pages.redirect(f"{repo.path}/app", f"{repo.full_name} is being restarted.")

    async def pause(request: HubRequest, repo: Repo) -> Response:
        await management.pause(spaces, repo, actor_of(request))
        return pages.redirect(f"{repo.path}/app", f"Paused {repo.full_name}.")

    async def sleep(request: HubRequest, repo: Repo) -> Response:
        seconds = request.form_fields.get("seconds")
        if seconds == "never":
            # Shown only if the operator set it; an unchanged form changes nothing.
            return pages.redirect(f"{repo.path}/app", "The sleep time is unchanged.")
        try:
            await management.set_sleep_time(spaces, repo, _whole_number(seconds), actor_of(request))
        except (BadRequest, Unprocessable) as error:
            return await context.show(request, repo, {"seconds": error.message})
        return pages.redirect(f"{repo.path}/app", "Saved the sleep time.")

    see, configure = Action.REPO_SEE, Action.REPO_CONFIGURE
    return [
        context.route("GET", "", see, show, "The app of a Space"),
        context.route("GET", "/live", see, live, "The state and the log of a Space"),
        context.route("POST", "/restart", configure, restart, "Restart a Space"),
        context.route("POST", "/pause", configure, pause, "Pause a Space"),
        context.route("POST", "/sleep", configure, sleep, "Set when a Space sleeps"),
    ]


def _whole_number(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise Unprocessable("Choose one of the times.")
    return int(text)
