"""The open resources of one process, without routes. Web processes, commands and background loops share them."""

import os
from collections.abc import Collection, Sequence
from functools import cached_property, partial
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct, field
from msgspec.structs import replace

from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.model import RevokedCounts
from hubgate.server.audit.model import Actor
from hubgate.server.clock import Clock, system_clock
from hubgate.server.egress.client import Egress
from hubgate.server.egress.tunnel_links import TunnelLinks
from hubgate.server.errors import StartupError
from hubgate.server.gateway.context import Gateway
from hubgate.server.gateway.upstream import parse_upstream
from hubgate.server.hub.collections import store as collection_store
from hubgate.server.hub.context import Limits, Repos
from hubgate.server.hub.git.folders import Folders
from hubgate.server.hub.lfs.files import LargeFiles
from hubgate.server.hub.repos import deletion as repo_deletion
from hubgate.server.hub.repos import redirects
from hubgate.server.hub.repos import transfer as repo_transfer
from hubgate.server.jobs.heartbeats import Heartbeats
from hubgate.server.jobs.slots import Slots
from hubgate.server.mail.message import default_sender
from hubgate.server.mail.outbox import Outbox
from hubgate.server.mail.transport import transport_for
from hubgate.server.oauth import account_reset
from hubgate.server.oauth.cimd.documents import Documents
from hubgate.server.oauth.context import OAuth
from hubgate.server.oauth.keys.ring import KeyRing
from hubgate.server.objects.model import Objects
from hubgate.server.objects.opening import StoreSettings, open_objects
from hubgate.server.search import store as search_store
from hubgate.server.secret import ServerSecret, existing_secret
from hubgate.server.settings import Settings
from hubgate.server.spaces import logs_store, spaces_of_owners
from hubgate.server.spaces.context import Spaces, on_content_changed
from hubgate.server.spaces.hosting import Hosting
from hubgate.server.storage.database import Database, Tx
from hubgate.server.storage.engines import open_database
from hubgate.server.storage.signals import Signal
from hubgate.server.throttle.rate_limiter import Limiter
from hubgate.server.webhooks.context import Webhooks
from hubgate.server.webhooks.retention import deletion as webhook_deletion
from hubgate.server.webhooks.stream import store as stream_store
from hubgate.server.webhooks.stream.live import Latest, LiveStreams
from hubgate.server.webhooks.tunnels.context import Tunnels
from hubgate.server.webhooks.tunnels.model import TunnelLimits
from hubgate.server.webhooks.watches import store as watches


class Hub(Struct, frozen=True, dict=True):
    """The open resources of one process, and the use cases built on them."""

    settings: Settings
    clock: Clock
    db: Database
    secret: ServerSecret
    outbox: Outbox
    egress: Egress
    limits: Limits = field(default_factory=Limits)

    @property
    def accounts(self) -> Accounts:
        settings = self.settings
        return Accounts(
            db=self.db,
            clock=self.clock,
            secret=self.secret,
            outbox=self.outbox,
            limiter=self.limiter,
            base_url=settings.base_url,
            signup=settings.signup,
            delete_owned=partial(_delete_owned, settings.base_url),
            rename_owned=partial(_rename_owned, settings.base_url),
            pause_owned=spaces_of_owners.pause,
            revoke_app_sign_ins=account_reset.revoke_sign_ins,
            revoke_apps_and_webhooks=_revoke_apps_and_webhooks,
            unlink_redirects=partial(redirects.unlink_to_others, watches.end_for_repo),
        )

    @cached_property
    def oauth(self) -> OAuth:
        settings = self.settings
        return OAuth(
            db=self.db,
            clock=self.clock,
            secret=self.secret,
            keys=self.keys,
            limiter=self.limiter,
            outbox=self.outbox,
            base_url=settings.base_url,
            cli_client_ids=settings.cli_client_ids,
            extra_scopes=settings.extra_scopes,
            cimd_device=settings.cimd_device,
            registration=settings.dynamic_registration,
            max_self_registered=self.limits.self_registered_apps,
            unavailable_scopes=_unavailable_scopes(settings),
            subject_token_types=settings.subject_token_type_aliases,
            documents=Documents(
                self.db,
                self.clock,
                self.limiter,
                self.egress,
                settings.cimd_max_bytes,
                settings.cimd_allow_http_loopback,
            ),
        )

    @cached_property
    def objects(self) -> Objects:
        """The store of large content."""
        return open_objects(store_settings(self.settings, self.limits), os.environ)

    @cached_property
    def repos(self) -> Repos:
        settings = self.settings
        return Repos(
            db=self.db,
            clock=self.clock,
            secret=self.secret,
            limiter=self.limiter,
            base_url=settings.base_url,
            folders=Folders(settings.data_dir / "repos"),
            large_files=LargeFiles(self.objects, self.db, settings.data_dir / "lfs"),
            regular_upload_max=settings.regular_upload_max,
            storage_quota=settings.storage_quota,
            on_unlinked=watches.end_for_repo,
            on_space_content=on_content_changed,
            guest_pull_requests=settings.guest_pull_requests,
            guest_bytes=settings.guest_bytes,
            outbox=self.outbox,
            store_downloads=Slots(
                self.limits.store_downloads,
                self.limits.store_downloads_per_caller,
                "Too many downloads at once. Try again.",
                self.limits.store_download_wait_seconds,
            ),
            limits=self.limits,
        )

    @property
    def spaces(self) -> Spaces:
        settings = self.settings
        return Spaces(self.db, self.clock, self.secret, settings.base_url, is_on=settings.runs_spaces)

    @cached_property
    def hosting(self) -> Hosting:
        return Hosting(self.spaces, self.limiter)

    @cached_property
    def webhooks(self) -> Webhooks:
        settings = self.settings
        return Webhooks(
            db=self.db,
            clock=self.clock,
            secret=self.secret,
            egress=self.egress,
            outbox=self.outbox,
            tunnels=self.tunnels,
            deliver_to_space=self.hosting.deliver,
            base_url=settings.base_url,
            quota=settings.webhook_quota,
            max_per_owner=settings.webhooks_per_owner,
            cli_client_ids=settings.cli_client_ids,
        )

    @cached_property
    def tunnels(self) -> Tunnels:
        limits = TunnelLimits(
            self.limits.tunnel_answer_seconds,
            self.limits.tunnel_posts,
            self.limits.tunnel_waiting,
            self.limits.tunnel_silence_seconds,
            self.limits.tunnel_stall_seconds,
        )
        links, is_on = own_links(self.settings), self.settings.tunnel
        return Tunnels(self.db, self.clock, self.secret, self.limiter, links, limits, is_on=is_on)

    @cached_property
    def heartbeats(self) -> Heartbeats:
        """What this process knows of the processes that send."""
        return Heartbeats(self.webhooks.pace.dead_after_seconds, self.senders_folder)

    @property
    def senders_folder(self) -> Path:
        """The lock files of processes that send."""
        return self.settings.data_dir / "senders"

    @cached_property
    def live_streams(self) -> LiveStreams:
        # Replays and tests signal deliveries, the fan-out signals streams.
        return self._streams_of(stream_store.latest, (Signal.STREAMS, Signal.DELIVERIES))

    @cached_property
    def log_streams(self) -> LiveStreams:
        return self._streams_of(logs_store.latest, (Signal.SPACE_LOGS,))

    def _streams_of(self, find_latest: Latest, signals: Collection[Signal]) -> LiveStreams:
        limits = self.limits
        return LiveStreams(
            db=self.db,
            find_latest=find_latest,
            signals=signals,
            limit=limits.streams,
            limit_per_user=limits.streams_per_user,
            comment_seconds=limits.stream_comment_seconds,
            stall_seconds=limits.stream_stall_seconds,
        )

    @cached_property
    def gateway(self) -> Gateway:
        settings = self.settings
        return Gateway(
            inference=parse_upstream(settings.inference_upstream, "inference service"),
            jobs=parse_upstream(settings.jobs_upstream, "jobs service"),
            base_url=settings.base_url,
            clock=self.clock,
            sign=self.oauth.signer.sign,
            longest_silence=self.limits.upstream_silence_seconds,
            longest_stall=self.limits.stall_seconds,
            permission_interval=self.limits.permission_check_seconds,
            slots=Slots(
                self.limits.forwarded_requests,
                self.limits.forwarded_per_user,
                "Too many requests to this service at once. Try again.",
                self.limits.forwarding_wait_seconds,
            ),
        )

    @property
    def keys(self) -> KeyRing:
        return KeyRing(self.db, self.secret, self.clock)

    @property
    def limiter(self) -> Limiter:
        return Limiter(self.db, self.clock)

    def end_streams(self) -> None:
        """End live streams, which a stopping web process would otherwise wait for."""
        self.live_streams.stop()
        self.log_streams.stop()

    async def close(self) -> None:
        await self.tunnels.close()
        await self.hosting.close()
        await self.outbox.finish()
        if "objects" in self.__dict__:
            await self.objects.close()
        self.egress.close()
        await self.db.close()


async def open_hub(settings: Settings, clock: Clock = system_clock, *, by_index: bool = False) -> Hub:
    db = await open_database(settings.database_url, by_index=by_index)
    try:
        secret = existing_secret(settings.secret_key, settings.data_dir, settings.engine.is_local)
    except StartupError:
        await db.close()
        raise
    sender = settings.mail_from or default_sender(urlsplit(settings.base_url).hostname or "")
    transport = transport_for(settings.smtp_url, settings.data_dir)
    outbox = Outbox(db, secret, clock, transport, sender, settings.base_url)
    return Hub(settings, clock, db, secret, outbox, egress_for(settings))


async def _delete_owned(base_url: str, tx: Tx, owner_id: str, now: int) -> None:
    """Delete all that a deleted account owns. A cascade is not enough: each repo's deletion is an event."""
    await search_store.remove_collections_of(tx, owner_id)
    await collection_store.remove_of_owner(tx, owner_id)
    await repo_deletion.delete_with_owner(base_url, tx, owner_id, now)
    await webhook_deletion.delete_with_owner(tx, owner_id)


async def _rename_owned(base_url: str, tx: Tx, owner_id: str, old: str, new: str, now: int) -> None:
    await repo_transfer.record_owner_rename(base_url, tx, owner_id, old, new, now)
    await spaces_of_owners.renew(tx, owner_id, now)


async def _revoke_apps_and_webhooks(
    tx: Tx, user_id: str, owners: Sequence[str], actor: Actor, reason: str, now: int
) -> RevokedCounts:
    """Revoke the app tokens and consents of a user whose address was never verified, and delete the apps and webhooks
    of `owners`: the user and the user's organizations, by id. Their audit logs record the actor and the reason.
    """
    revoked = await account_reset.revoke_everything(tx, user_id, owners, actor, reason, now)
    deleted = [await webhook_deletion.delete_with_audit_entries(tx, owner, actor, reason, now) for owner in owners]
    return replace(revoked, webhooks=sum(deleted))


def _unavailable_scopes(settings: Settings) -> frozenset[str]:
    upstreams = {"inference-api": settings.inference_upstream, "jobs": settings.jobs_upstream}
    return frozenset(scope for scope, address in upstreams.items() if not address)


def store_settings(settings: Settings, limits: Limits) -> StoreSettings:
    return StoreSettings(
        data_dir=settings.data_dir,
        url=settings.objects_url,
        former_url=settings.objects_former_url,
        with_links=settings.objects_links,
        public_endpoint=settings.objects_public_endpoint,
        hub_url=settings.base_url,
        silence_seconds=limits.store_silence_seconds,
        retry_seconds=limits.store_retry_seconds,
        single_bytes=limits.store_single_bytes,
        part_bytes=limits.store_part_bytes,
    )


def egress_for(settings: Settings) -> Egress:
    """The client for outgoing requests. The hub's own addresses are blocked: a request to itself would be a loop."""
    public = urlsplit(settings.base_url)
    port = public.port or (443 if settings.secure else 80)
    own = frozenset({(public.hostname or "", port), (settings.host, settings.port)})
    return Egress(settings.egress_allow, settings.egress_proxy, own, links=own_links(settings))


def own_links(settings: Settings) -> TunnelLinks:
    """The addresses of this hub that deliveries may be sent to, without leaving it."""
    return TunnelLinks(settings.base_url, settings.tunnel_host, runs_spaces=settings.runs_spaces)
