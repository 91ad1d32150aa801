"""`/hosted/{owner}/{name}/`: the apps of Spaces. Like a temporary link, it forwards only POSTs to /webhooks/."""

from hubgate.server.access.actions import Action
from hubgate.server.edge.routes import Route, public
from hubgate.server.egress.hosted_links import PREFIX
from hubgate.server.egress.tunnel_links import is_forwarded
from hubgate.server.errors import NotFound
from hubgate.server.http.asgi import ASGIApp
from hubgate.server.http.request import HubRequest
from hubgate.server.http.surface import Surface
from hubgate.server.hub.context import Repos
from hubgate.server.hub.repos import store as repo_store
from hubgate.server.hub.repos.model import Repo, RepoType
from hubgate.server.spaces import management
from hubgate.server.spaces.context import Spaces
from hubgate.server.spaces.hosting import Hosting
from hubgate.server.spaces.model import ANSWER_SECONDS, SERVING, Stage
from hubgate.server.web.receiver_responses import forwarded_answer, path_at_receiver, receiver_page
from hubgate.server.web.repo_routes import repo_endpoint
from hubgate.server.webhooks.tunnels.model import MAX_BODY

_SPACE = PREFIX + "{namespace}/{repo}"
_ANY = _SPACE + "/{path:path}"
_NO_PAGES = "It receives webhooks and has no pages."


def routes(repos: Repos, spaces: Spaces, hosting: Hosting) -> list[Route]:
    async def show(request: HubRequest) -> ASGIApp:
        """The same for anyone: a page at this address has no session."""
        owner, name = request.param("namespace"), request.param("repo")
        repo = await repo_store.named(repos.db, RepoType.SPACE.value, owner, name)
        space = await management.state(spaces, repo) if repo is not None and not repo.private else None
        if repo is None or space is None:
            return receiver_page("Space not found", "No public Space runs at this address.", 404)
        stage = Stage(space.stage)
        if stage in SERVING:
            return receiver_page(repo.full_name, f"This Space runs. {_NO_PAGES}")
        if stage is Stage.SLEEPING:
            return receiver_page(repo.full_name, f"This Space sleeps and starts with the next webhook. {_NO_PAGES}")
        return receiver_page(repo.full_name, f"This Space does not run now: {space.stage}. {_NO_PAGES}")

    async def forward(request: HubRequest, repo: Repo) -> ASGIApp:
        path = path_at_receiver(request, 3)
        if not is_forwarded(path):
            raise NotFound("A Space gets only requests to /webhooks/.")
        headers = list(request.headers.items())
        return forwarded_answer(await hosting.forward(repo, path, headers, await request.body(), ANSWER_SECONDS))

    posted = repo_endpoint(repos, Action.REPO_SEE, forward)(RepoType.SPACE, _ANY)
    return [
        *(Route("GET", path, public(show), Surface.TUNNEL, "A Space's app in a browser") for path in (_SPACE, _ANY)),
        Route("POST", _ANY, posted, Surface.TUNNEL, "A request to a Space's app", body_cap=MAX_BODY),
    ]
