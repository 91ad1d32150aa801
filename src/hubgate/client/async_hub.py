"""`AsyncHub`: the asyncio client, with the methods of `Hub` as coroutines."""

from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from hubgate.client.async_transport import AsyncDriver
from hubgate.client.base import BaseHub, copy_signature
from hubgate.client.files import downloads, uploads
from hubgate.client.login import sign_in
from hubgate.client.operations import accounts, oauth, repos, spaces, webhooks
from hubgate.client.operations import webhook_events as events
from hubgate.client.session import Session
from hubgate.client.wire import Flow

P = ParamSpec("P")
T = TypeVar("T")


def _awaitable(
    operation: Callable[Concatenate[Session, P], Flow[T]],
) -> Callable[Concatenate["AsyncHub", P], Coroutine[Any, Any, T]]:
    async def method(self: "AsyncHub", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._driver.run(operation(self._session, *args, **kwargs))

    return copy_signature(method, operation)


class AsyncHub(BaseHub):
    """A client for a hub, for use in one event loop. Arguments are those of `Hub`; blocking work runs in threads."""

    _driver: AsyncDriver
    _driver_type = AsyncDriver

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        await self.close()

    async def close(self) -> None:
        """Close open connections. The object can still be used afterwards."""
        await self._driver.close()

    # The same operations as in `Hub`; a test compares the two lists.
    login = _awaitable(sign_in.login)
    login_in_browser = _awaitable(sign_in.login_in_browser)
    logout = _awaitable(sign_in.logout)
    whoami = _awaitable(accounts.whoami)
    exchange_token = _awaitable(oauth.exchange_token)
    list_tokens = _awaitable(accounts.list_tokens)
    rename_token = _awaitable(accounts.rename_token)
    revoke_token = _awaitable(accounts.revoke_token)
    create_webhook = _awaitable(webhooks.create_webhook)
    list_webhooks = _awaitable(webhooks.list_webhooks)
    get_webhook = _awaitable(webhooks.get_webhook)
    update_webhook = _awaitable(webhooks.update_webhook)
    enable_webhook = _awaitable(webhooks.enable_webhook)
    disable_webhook = _awaitable(webhooks.disable_webhook)
    delete_webhook = _awaitable(webhooks.delete_webhook)
    test_webhook = _awaitable(webhooks.test_webhook)
    webhook_activity = _awaitable(webhooks.webhook_activity)
    get_delivery = _awaitable(webhooks.get_delivery)
    replay_webhook = _awaitable(webhooks.replay_webhook)
    replay_webhook_since = _awaitable(webhooks.replay_webhook_since)
    start_replay = _awaitable(webhooks.start_replay)
    get_replay = _awaitable(webhooks.get_replay)
    follow_replay = _awaitable(webhooks.follow_replay)
    cancel_replay = _awaitable(webhooks.cancel_replay)
    webhook_events = _awaitable(events.webhook_events)
    follow_webhook = _awaitable(events.follow_webhook)
    create_repo = _awaitable(repos.create_repo)
    delete_repo = _awaitable(repos.delete_repo)
    move_repo = _awaitable(repos.move_repo)
    repo_info = _awaitable(repos.repo_info)
    list_repos = _awaitable(repos.list_repos)
    list_files = _awaitable(repos.list_files)
    upload = _awaitable(uploads.upload)
    delete_files = _awaitable(repos.delete_files)
    download = _awaitable(downloads.download)
    download_all = _awaitable(downloads.download_all)
    space_runtime = _awaitable(spaces.space_runtime)
    restart_space = _awaitable(spaces.restart_space)
    pause_space = _awaitable(spaces.pause_space)
    list_space_secrets = _awaitable(spaces.list_space_secrets)
    set_space_secret = _awaitable(spaces.set_space_secret)
    delete_space_secret = _awaitable(spaces.delete_space_secret)
    read_space_log = _awaitable(spaces.read_space_log)
    get_organization = _awaitable(accounts.get_organization)
    list_members = _awaitable(accounts.list_members)
    set_member_role = _awaitable(accounts.set_member_role)
    remove_member = _awaitable(accounts.remove_member)
    export_audit_log = _awaitable(accounts.export_audit_log)
