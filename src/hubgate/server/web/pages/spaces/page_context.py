"""Shared parts of the pages about the app of a Space: its state, logs and settings."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from hubgate.server.access.actions import Action
from hubgate.server.edge.routes import KIB, Handler, Route
from hubgate.server.egress.hosted_links import hosted_url
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.http.surface import Surface
from hubgate.server.hub.repos.model import Repo, RepoType
from hubgate.server.spaces import logs_store, management, settings_store
from hubgate.server.spaces.context import Spaces
from hubgate.server.spaces.logs_store import BUILD, RUN, Line
from hubgate.server.spaces.model import LONGEST_SLEEP_SECONDS, Space, Stage
from hubgate.server.web.pages.repos.page_context import RepoPageContext
from hubgate.server.web.rendering import NO_ERRORS
from hubgate.server.web.repo_routes import repo_endpoint

LINES_SHOWN = 500
_HOUR = 3600
SLEEP_TIMES = tuple((str(hours * _HOUR), f"{hours} hours" if hours > 1 else "1 hour") for hours in (1, 4, 12, 24, 48))
# Stages that change by themselves: the build log is then the one to follow.
_BUILDING = {Stage.BUILDING.value, Stage.RUNNING_BUILDING.value, Stage.BUILD_ERROR.value}


class SpacePageContext(Struct, frozen=True):
    base: RepoPageContext
    spaces: Spaces

    def route(self, method: str, tail: str, action: Action, handler: Handler[Repo], summary: str) -> Route:
        path = f"/{RepoType.SPACE.url_prefix}{{namespace}}/{{repo}}/app{tail}"
        endpoint = repo_endpoint(self.base.repos, action, handler)(RepoType.SPACE, path)
        return Route(method, path, endpoint, Surface.PAGE, summary, body_cap=128 * KIB)

    async def show(
        self, request: HubRequest, repo: Repo, errors: Mapping[str, str] = NO_ERRORS, **given: str
    ) -> Response:
        """Render the page. `given` are the values of a rejected form."""
        values = await self.live_values(request, repo)
        if values["may_configure"]:
            values["secrets"] = await settings_store.secrets(self.spaces.db, repo.id)
            values["variables"] = await settings_store.variables(self.spaces.db, repo.id)
            values["sleep_times"] = sleep_times(values["space"])
        url = hosted_url(self.spaces.base_url, repo.full_name)
        return self.base.show(
            request, repo, "app.html", "app", errors, url=url, is_on=self.spaces.is_on, given=given, **values
        )

    async def live_values(self, request: HubRequest, repo: Repo) -> dict[str, Any]:
        """The values that change while the page is open. Only users who may configure the Space see its logs."""
        space = await management.state(self.spaces, repo)
        may_configure = self.base.may(request, repo, Action.REPO_CONFIGURE)
        query = request.query()
        chosen = query.get("log") or (BUILD if space is not None and space.stage in _BUILDING else RUN)
        log = chosen if chosen in (BUILD, RUN) else RUN
        after = query.get("after") or ""
        lines = await self._lines(repo, log, after) if space is not None and may_configure else []
        return {"space": space, "may_configure": may_configure, "log": log, "lines": lines}

    async def _lines(self, repo: Repo, log: str, after: str) -> list[Line]:
        if after.isascii() and after.isdigit() and len(after) < 16:
            return await self.spaces.db.read(lambda tx: logs_store.read(tx, repo.id, log, int(after), LINES_SHOWN))
        return await self.spaces.db.read(lambda tx: logs_store.newest(tx, repo.id, log, LINES_SHOWN))


def sleep_times(space: Space | None) -> tuple[tuple[str, str], ...]:
    """The choices for the sleep time, with the current one if it is another."""
    seconds = LONGEST_SLEEP_SECONDS if space is None else space.sleep_seconds
    current = "never" if seconds is None else str(seconds)
    if any(value == current for value, _ in SLEEP_TIMES):
        return SLEEP_TIMES
    return (*SLEEP_TIMES, (current, "Never (set by the operator)" if seconds is None else f"{seconds:,} seconds"))
