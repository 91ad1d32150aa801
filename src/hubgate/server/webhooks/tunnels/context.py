"""The dependencies of tunnels in one process, and the use cases on links: open, find, close."""

import secrets
from collections.abc import Iterable

from hubgate.server.accounts.account_locks import lock_account_and_credentials
from hubgate.server.audit.model import Actor
from hubgate.server.clock import Clock
from hubgate.server.egress.tunnel_links import TunnelLinks
from hubgate.server.errors import Forbidden, NotFound
from hubgate.server.secret import ServerSecret
from hubgate.server.storage.database import Database, Tx
from hubgate.server.storage.signals import Signal
from hubgate.server.throttle.rate_limiter import Limit, Limiter
from hubgate.server.webhooks.tunnels import store
from hubgate.server.webhooks.tunnels.channel import TUNNELS
from hubgate.server.webhooks.tunnels.forwarding import Forwarding
from hubgate.server.webhooks.tunnels.model import LIFETIME, MAX_PER_USER, Answer, Tunnel, TunnelLimits, new_tunnel_id
from hubgate.server.webhooks.tunnels.sockets import Sockets

NO_LINK = "This link does not exist, or it has expired."
OPENED = Limit("tunnels", 60, 3600, "Too many temporary links. Try again in {duration}.")
CONNECTED = Limit("tunnel connections", 120, 600, "This program connects too often. Try again in {duration}.")


class Tunnels:
    """Tunnels in one process. `is_on` is the operator's setting: if it is false, no link is found."""

    def __init__(
        self,
        db: Database,
        clock: Clock,
        secret: ServerSecret,
        limiter: Limiter,
        links: TunnelLinks,
        limits: TunnelLimits,
        *,
        is_on: bool,
    ) -> None:
        self._db, self._clock, self._limiter, self._is_on = db, clock, limiter, is_on
        self.links, self.limits = links, limits
        self._posted = Limit(
            "tunnel requests", limits.posts, 60, "Too many requests to this link. Try again in {duration}."
        )
        process = secrets.token_hex(16)
        self._forwarding = Forwarding(db, clock, secret, process, TUNNELS, _lock_link, limits.waiting)
        self.sockets = Sockets(db, clock, secret, process, limits)

    async def close(self) -> None:
        await self._forwarding.close()
        await self.sockets.close()

    async def open(self, actor: Actor, user_id: str, opened_by: str | None) -> Tunnel:
        """Open a tunnel for a user; `opened_by` is set if an app does."""
        self._require_on()
        now = self._clock()
        tunnel = Tunnel(new_tunnel_id(), user_id, opened_by, now, now + LIFETIME)
        await self._limiter.take(OPENED, _counted_for(tunnel))

        async def unit(tx: Tx) -> None:
            await lock_account_and_credentials(tx, user_id, actor.credentials_version)
            await store.remove_oldest(tx, user_id, MAX_PER_USER - 1, of_apps=opened_by is not None)
            await store.add(tx, tunnel)

        await self._db.write(unit)
        return tunnel

    async def find(self, tunnel_id: str) -> Tunnel:
        """The tunnel with this id, of any user."""
        found = await store.find(self._db, tunnel_id, self._clock()) if self._is_on else None
        if found is None:
            raise NotFound(NO_LINK)
        return found

    async def find_of_user(self, user_id: str, opened_by: str | None, tunnel_id: str) -> Tunnel:
        """The tunnel of a user. An app has only those that it opened: others carry deliveries of private repos, and
        the secrets of webhooks (attacks O74 and W41).
        """
        found = await self.find(tunnel_id)
        if found.user_id != user_id or opened_by not in (None, found.opened_by):
            raise NotFound(NO_LINK)
        return found

    async def count_connection(self, tunnel: Tunnel) -> None:
        await self._limiter.take(CONNECTED, _counted_for(tunnel))

    async def count_post(self, tunnel: Tunnel) -> None:
        await self._limiter.take(self._posted, tunnel.id)

    async def forward(
        self, tunnel_id: str, path: str, headers: Iterable[tuple[str, str]], body: bytes, seconds: float
    ) -> Answer:
        """Forward a request; NotFound without a link. `Forwarding.forward` says how else it can fail."""
        if not self._is_on:
            raise NotFound(NO_LINK)
        return await self._forwarding.forward(tunnel_id, path, headers, body, seconds)

    async def remove(self, tunnel: Tunnel) -> None:
        async def unit(tx: Tx) -> bool:
            # For the process that has the WebSocket.
            tx.signal(Signal.TUNNEL_REQUESTS)
            return await store.remove(tx, tunnel.id)

        if not await self._db.write(unit):
            raise NotFound(NO_LINK)

    def _require_on(self) -> None:
        if not self._is_on:
            raise Forbidden("The operator of this hub has switched temporary links off.")


async def _lock_link(tx: Tx, tunnel_id: str, now: int) -> None:
    if not await store.lock(tx, tunnel_id, now):
        raise NotFound(NO_LINK)


def _counted_for(tunnel: Tunnel) -> str:
    """The subject of rate limits. An app must not use up the limits of its user."""
    return tunnel.user_id if tunnel.opened_by is None else f"{tunnel.user_id} apps"
