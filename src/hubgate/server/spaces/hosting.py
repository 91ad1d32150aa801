"""Requests to the apps of Spaces, from any process: `/hosted/{owner}/{name}/`, and deliveries of this hub."""

import secrets

from hubgate.server.clock import SECOND
from hubgate.server.egress.hosted_links import HostedLink
from hubgate.server.errors import NotFound
from hubgate.server.hub.repos import store as repo_store
from hubgate.server.hub.repos.model import Repo, RepoType
from hubgate.server.spaces import store
from hubgate.server.spaces.context import Spaces
from hubgate.server.spaces.model import MAX_WAITING, SERVING, WAKING, Stage
from hubgate.server.storage.database import Tx
from hubgate.server.storage.signals import Signal
from hubgate.server.throttle.rate_limiter import Limit, Limiter
from hubgate.server.webhooks.tunnels.channel import Channel
from hubgate.server.webhooks.tunnels.forwarding import Forwarding, ReceiverDown
from hubgate.server.webhooks.tunnels.model import Answer, Headers
from hubgate.server.webhooks.tunnels.requests_store import RequestTable

NO_SPACE = "No Space runs at this address."
POSTED = Limit("space requests", 600, 60, "Too many requests to this Space. Try again in {duration}.")
# How precisely the time of the last request is stored while a Space serves.
_PRECISION = 10 * SECOND

# A request is sent when the app serves: until then, it may be left to a later attempt.
_REQUESTS = RequestTable("space_requests", "spaces", "repo_id", "repo_id", ready="t.running_version IS NOT NULL")
CHANNEL = Channel(_REQUESTS, Signal.SPACES, Signal.SPACE_ANSWERS)
_DOWN = {
    Stage.PAUSED: "This Space is paused.",
    Stage.NO_APP_FILE: "This Space has no app yet.",
    Stage.CONFIG_ERROR: "The card of this Space is invalid.",
    Stage.BUILD_ERROR: "This Space could not be built.",
    Stage.RUNTIME_ERROR: "The app of this Space has failed.",
}


class Hosting:
    """Forwards requests to Spaces. A sleeping Space is started, and the request waits."""

    def __init__(self, spaces: Spaces, limiter: Limiter) -> None:
        self._spaces, self._limiter = spaces, limiter
        process = secrets.token_hex(16)
        self._forwarding = Forwarding(
            spaces.db, spaces.clock, spaces.secret, process, CHANNEL, _admit, MAX_WAITING, starts=True
        )

    async def close(self) -> None:
        await self._forwarding.close()

    async def forward(self, repo: Repo, path: str, headers: Headers, body: bytes, seconds: float) -> Answer:
        """Forward a request of a caller who may see the Space. Fails like `Forwarding.forward`; ReceiverDown if the
        Space does not run.
        """
        self._require_on()
        await self._limiter.take(POSTED, repo.id)
        return await self._forwarding.forward(repo.id, path, headers, body, seconds)

    async def deliver(self, webhook_id: str, link: HostedLink, headers: Headers, body: bytes, seconds: float) -> Answer:
        """Forward a delivery of this hub. A private Space gets only those of webhooks whose owner may see it."""
        self._require_on()
        repo = await repo_store.named(self._spaces.db, RepoType.SPACE.value, link.owner, link.name)
        if repo is None or not await store.is_visible_to_webhook(self._spaces.db, repo.id, webhook_id):
            raise NotFound(NO_SPACE)
        return await self._forwarding.forward(repo.id, link.path, headers, body, seconds)

    def _require_on(self) -> None:
        if not self._spaces.is_on:
            raise NotFound(NO_SPACE)


async def _admit(tx: Tx, repo_id: str, now: int) -> None:
    space = await store.lock(tx, repo_id)
    if space is None or not space.sdk:
        raise NotFound(NO_SPACE)
    stage = Stage(space.stage)
    if stage not in SERVING | WAKING:
        raise ReceiverDown(_DOWN.get(stage, "This Space does not run."), retry_after=60)
    if stage is Stage.SLEEPING or space.last_request_at < now - _PRECISION:
        await store.touch(tx, repo_id, now)
