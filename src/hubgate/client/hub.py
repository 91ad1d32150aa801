"""`Hub`: the blocking client. Each method runs an operation; `AsyncHub` has the same methods as coroutines."""

from collections.abc import Callable
from types import TracebackType
from typing import Concatenate, ParamSpec, Self, TypeVar

from hubgate.client.base import BaseHub, copy_signature
from hubgate.client.files import downloads, uploads
from hubgate.client.login import sign_in
from hubgate.client.operations import accounts, oauth, repos, spaces, webhooks
from hubgate.client.operations import webhook_events as events
from hubgate.client.session import Session
from hubgate.client.transport import Driver
from hubgate.client.wire import Flow

P = ParamSpec("P")
T = TypeVar("T")


def _blocking(operation: Callable[Concatenate[Session, P], Flow[T]]) -> Callable[Concatenate["Hub", P], T]:
    def method(self: "Hub", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._driver.run(operation(self._session, *args, **kwargs))

    return copy_signature(method, operation)


class Hub(BaseHub):
    """A client for a hub. Threads may share it.

    `endpoint`: the hub's address. Default: HUBGATE_ENDPOINT, else the hub of the last sign-in, else
        http://127.0.0.1:8000.
    `token`: the access token. Default: HUBGATE_TOKEN, else the stored sign-in for that hub. False for anonymous access.
    `timeout`: seconds to connect, and to wait for a response.
    """

    _driver: Driver
    _driver_type = Driver

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close open connections. The object can still be used afterwards."""
        self._driver.close()

    # Sign-in.
    login = _blocking(sign_in.login)
    login_in_browser = _blocking(sign_in.login_in_browser)
    logout = _blocking(sign_in.logout)
    whoami = _blocking(accounts.whoami)
    exchange_token = _blocking(oauth.exchange_token)

    # Personal tokens, which can be created only on the hub's web pages.
    list_tokens = _blocking(accounts.list_tokens)
    rename_token = _blocking(accounts.rename_token)
    revoke_token = _blocking(accounts.revoke_token)

    # Webhooks of the user or, with `organization`, of an organization.
    create_webhook = _blocking(webhooks.create_webhook)
    list_webhooks = _blocking(webhooks.list_webhooks)
    get_webhook = _blocking(webhooks.get_webhook)
    update_webhook = _blocking(webhooks.update_webhook)
    enable_webhook = _blocking(webhooks.enable_webhook)
    disable_webhook = _blocking(webhooks.disable_webhook)
    delete_webhook = _blocking(webhooks.delete_webhook)
    test_webhook = _blocking(webhooks.test_webhook)
    webhook_activity = _blocking(webhooks.webhook_activity)
    get_delivery = _blocking(webhooks.get_delivery)
    replay_webhook = _blocking(webhooks.replay_webhook)
    replay_webhook_since = _blocking(webhooks.replay_webhook_since)
    start_replay = _blocking(webhooks.start_replay)
    get_replay = _blocking(webhooks.get_replay)
    follow_replay = _blocking(webhooks.follow_replay)
    cancel_replay = _blocking(webhooks.cancel_replay)
    webhook_events = _blocking(events.webhook_events)
    follow_webhook = _blocking(events.follow_webhook)

    # Repos. `repo` is namespace/name; `type` is model, dataset or space.
    create_repo = _blocking(repos.create_repo)
    delete_repo = _blocking(repos.delete_repo)
    move_repo = _blocking(repos.move_repo)
    repo_info = _blocking(repos.repo_info)
    list_repos = _blocking(repos.list_repos)

    # Files.
    list_files = _blocking(repos.list_files)
    upload = _blocking(uploads.upload)
    delete_files = _blocking(repos.delete_files)
    download = _blocking(downloads.download)
    download_all = _blocking(downloads.download_all)

    # Spaces that the hub runs. `space` is namespace/name.
    space_runtime = _blocking(spaces.space_runtime)
    restart_space = _blocking(spaces.restart_space)
    pause_space = _blocking(spaces.pause_space)
    list_space_secrets = _blocking(spaces.list_space_secrets)
    set_space_secret = _blocking(spaces.set_space_secret)
    delete_space_secret = _blocking(spaces.delete_space_secret)
    read_space_log = _blocking(spaces.read_space_log)

    # Organizations.
    get_organization = _blocking(accounts.get_organization)
    list_members = _blocking(accounts.list_members)
    set_member_role = _blocking(accounts.set_member_role)
    remove_member = _blocking(accounts.remove_member)
    export_audit_log = _blocking(accounts.export_audit_log)
