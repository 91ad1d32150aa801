"""`Hub`: the blocking client. `AsyncHub` has the same methods as coroutines; a test compares the two."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, Unpack

from hubgate.client.errors import Refused
from hubgate.client.files import downloading, uploading
from hubgate.client.files.sources import Progress
from hubgate.client.files.uploading import Target
from hubgate.client.login import signing_in
from hubgate.client.models import (
    AccessToken,
    AuditEntry,
    Commit,
    Delivery,
    DeviceCode,
    Entry,
    Member,
    Organization,
    Repo,
    RepoMade,
    Sent,
    Token,
    Uploaded,
    Webhook,
    WebhookOptions,
    WhoAmI,
)
from hubgate.client.opening import session_for
from hubgate.client.operations import oauth, people, repos, webhooks
from hubgate.client.operations.oauth import CLI_CLIENT_ID
from hubgate.client.operations.webhooks import Watchable
from hubgate.client.session import RETRIES
from hubgate.client.store import Store
from hubgate.client.transport import Driver


class Hub:
    """A client for a hub. Threads may share it.

    `endpoint`: the hub's address. Default: HUBGATE_ENDPOINT, else the hub of the last sign-in, else
        http://127.0.0.1:8000.
    `token`: the access token. Default: HUBGATE_TOKEN, else the stored sign-in for that hub. False for anonymous access.
    `timeout`: seconds to connect, and to wait for a response.
    """

    def __init__(
        self,
        endpoint: str | None = None,
        token: str | Literal[False] | None = None,
        timeout: float = 30,
        *,
        retries: int = RETRIES,
        config_folder: Path | None = None,
    ) -> None:
        self._store = Store(config_folder)
        self._session = session_for(endpoint, token, self._store, retries)
        self._driver = Driver(timeout)
        self._run = self._driver.run

    @property
    def endpoint(self) -> str:
        return self._session.endpoint

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.endpoint!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close open connections. The object can still be used afterwards."""
        self._driver.close()

    # Sign-in.

    def login(
        self,
        show: Callable[[DeviceCode], object],
        *,
        client_id: str = CLI_CLIENT_ID,
        scopes: Sequence[str] | None = None,
    ) -> WhoAmI:
        """Sign in with a device code, and store the sign-in.

        `show` must display the code, which the user enters in any browser.
        """
        return self._run(signing_in.by_device(self._session, self._store, show, client_id=client_id, scopes=scopes))

    def login_in_browser(
        self,
        client_id: str,
        *,
        scopes: Sequence[str] = ("openid", "profile"),
        open_browser: Callable[[str], object] | None = None,
        seconds: float = 300,
    ) -> WhoAmI:
        """Sign in with a browser on this machine, and store the sign-in.

        `client_id` is an app whose registered redirect URI is http://127.0.0.1/callback, with any port.
        """
        return self._run(
            signing_in.by_browser(
                self._session, self._store, open_browser, client_id=client_id, scopes=scopes, seconds=seconds
            )
        )

    def logout(self) -> bool:
        """Revoke the stored sign-in and delete it. False if there was none."""
        return self._run(signing_in.out(self._session, self._store))

    def whoami(self) -> WhoAmI:
        return self._run(people.whoami(self._session))

    def exchange_token(
        self, client_id: str, client_secret: str, email: str, *, scopes: Sequence[str] | None = None
    ) -> Token:
        """Get a token for a member of the app's organization, by e-mail address (RFC 8693)."""
        return self._run(oauth.exchange(self._session, client_id, client_secret, email, scopes))

    # Personal tokens, which can be created only on the hub's web pages.

    def list_tokens(self, *, limit: int | None = None) -> list[AccessToken]:
        return self._run(people.tokens(self._session, limit))

    def rename_token(self, token_id: str, name: str) -> AccessToken:
        return self._run(people.rename_token(self._session, token_id, name))

    def revoke_token(self, token_id: str) -> None:
        self._run(people.revoke_token(self._session, token_id))

    # Webhooks of the user or, with `organization`, of an organization.

    def create_webhook(
        self,
        url: str | None = None,
        *,
        watched: Sequence[Watchable],
        domains: Sequence[str] | None = None,
        secret: str | None = None,
        organization: str | None = None,
        pull: bool = False,
        **options: Unpack[WebhookOptions],
    ) -> Webhook:
        """Create a webhook that sends events to `url` or, with `pull=True`, stores them for the caller to fetch.

        Each item of `watched` is {"type": …, "name": …}; the type is user, org, model, dataset or space.
        """
        return self._run(webhooks.create(self._session, url, watched, domains, secret, organization, pull, options))

    def list_webhooks(self, *, organization: str | None = None) -> list[Webhook]:
        return self._run(webhooks.every(self._session, organization))

    def get_webhook(self, webhook_id: str, *, organization: str | None = None) -> Webhook:
        return self._run(webhooks.get(self._session, webhook_id, organization))

    def update_webhook(
        self,
        webhook_id: str,
        url: str | None = None,
        watched: Sequence[Watchable] | None = None,
        domains: Sequence[str] | None = None,
        *,
        secret: str | None = None,
        overlap_seconds: int | None = None,
        organization: str | None = None,
        **options: Unpack[WebhookOptions],
    ) -> Webhook:
        """Change a webhook. Arguments that are None leave the setting unchanged.

        `secret=""` removes the secret. After a change of secret, deliveries are also signed with the old secret for
        `overlap_seconds`.
        """
        return self._run(
            webhooks.update(
                self._session, webhook_id, url, watched, domains, secret, overlap_seconds, organization, options
            )
        )

    def enable_webhook(self, webhook_id: str, *, organization: str | None = None) -> Webhook:
        return self._run(webhooks.switch(self._session, webhook_id, "enable", organization))

    def disable_webhook(self, webhook_id: str, *, organization: str | None = None) -> Webhook:
        return self._run(webhooks.switch(self._session, webhook_id, "disable", organization))

    def delete_webhook(self, webhook_id: str, *, organization: str | None = None) -> None:
        self._run(webhooks.delete(self._session, webhook_id, organization))

    def test_webhook(self, webhook_id: str, *, organization: str | None = None) -> Sent:
        """Send a sample delivery, and wait up to twenty seconds for the receiver's response."""
        return self._run(webhooks.test(self._session, webhook_id, organization))

    def webhook_activity(
        self,
        webhook_id: str,
        *,
        state: str | None = None,
        repo: str | None = None,
        scope: str | None = None,
        limit: int | None = 100,
        organization: str | None = None,
    ) -> list[Delivery]:
        """List deliveries, newest first."""
        return self._run(
            webhooks.activity(self._session, webhook_id, organization, state=state, repo=repo, scope=scope, limit=limit)
        )

    def get_delivery(self, webhook_id: str, delivery_id: str, *, organization: str | None = None) -> dict[str, Any]:
        """Get a delivery with its payload, request and attempts."""
        return self._run(webhooks.delivery(self._session, webhook_id, delivery_id, organization))

    def replay_webhook(self, webhook_id: str, delivery_id: str, *, organization: str | None = None) -> Sent:
        """Send a delivery again, to the webhook's current URL and with its current secret."""
        return self._run(webhooks.replay(self._session, webhook_id, delivery_id, organization))

    def replay_webhook_since(
        self,
        webhook_id: str,
        since: datetime,
        *,
        state: str | None = None,
        rate: float | None = None,
        progress: Callable[[int, int], object] | None = None,
        refused: Callable[[Delivery, Refused], object] | None = None,
        organization: str | None = None,
    ) -> list[Sent]:
        """Send every event since a time again, oldest first and one at a time, at most `rate` per second.

        With `state="failed"`, only failed deliveries are replayed. `progress` receives the number processed and the
        total. A delivery that the hub rejects is passed to `refused` and skipped; without `refused`, the error is
        raised.
        """
        return self._run(
            webhooks.replay_since(
                self._session,
                webhook_id,
                since,
                organization,
                state=state,
                rate=rate,
                progress=progress,
                refused=refused,
            )
        )

    # Repos. `repo` is namespace/name; `type` is model, dataset or space.

    def create_repo(
        self,
        name: str,
        *,
        type: str | None = None,  # noqa: A002
        private: bool = False,
        sdk: str | None = None,
        exist_ok: bool = False,
    ) -> RepoMade:
        return self._run(repos.create(self._session, name, type, private=private, sdk=sdk, exist_ok=exist_ok))

    def delete_repo(self, name: str, *, type: str | None = None) -> None:  # noqa: A002
        self._run(repos.delete(self._session, name, type))

    def move_repo(
        self,
        old: str,
        new: str,
        *,
        type: str | None = None,  # noqa: A002
        leave_redirect: bool | None = None,
    ) -> None:
        """Rename a repo or move it to another owner.

        `leave_redirect` sets whether the old name redirects to another owner's repo. Only admins of the old owner may
        set it.
        """
        self._run(repos.move(self._session, old, new, type, leave_redirect))

    def repo_info(self, repo: str, *, type: str | None = None, revision: str | None = None) -> Repo:  # noqa: A002
        return self._run(repos.info(self._session, repo, type, revision))

    def list_repos(
        self,
        *,
        type: str | None = None,  # noqa: A002
        owner: str | None = None,
        search: str | None = None,
        limit: int | None = None,
    ) -> list[Repo]:
        return self._run(repos.every(self._session, type, owner=owner, search=search, limit=limit))

    # Files.

    def list_files(
        self,
        repo: str,
        *,
        path: str = "",
        type: str | None = None,  # noqa: A002
        revision: str = "main",
        recursive: bool = True,
    ) -> list[Entry]:
        return self._run(repos.files(self._session, repo, type, revision, path, recursive=recursive))

    def upload(
        self,
        repo: str,
        files: Mapping[str, Path | bytes],
        *,
        type: str | None = None,  # noqa: A002
        revision: str = "main",
        message: str | None = None,
        description: str | None = None,
        parent: str | None = None,
        create_pr: bool = False,
        progress: Progress | None = None,
    ) -> Uploaded:
        """Upload files to a repo in one commit. `files` maps paths in the repo to local files or contents.

        `progress` receives the path, the bytes sent and the total bytes. `AsyncHub` calls it from a worker thread.
        """
        return self._run(
            uploading.upload(
                self._session,
                Target(repo, type, revision),
                files,
                message=message,
                description=description,
                parent=parent,
                create_pr=create_pr,
                progress=progress,
            )
        )

    def delete_files(
        self,
        repo: str,
        paths: Sequence[str],
        *,
        type: str | None = None,  # noqa: A002
        revision: str = "main",
        message: str | None = None,
    ) -> Commit:
        return self._run(repos.delete_files(self._session, repo, paths, type, revision, message))

    def download(
        self,
        repo: str,
        path: str,
        to: Path | None = None,
        *,
        type: str | None = None,  # noqa: A002
        revision: str = "main",
        progress: Progress | None = None,
    ) -> Path:
        """Download a file to `to`, or into the working folder.

        An interrupted download is resumed. The file appears only when it is complete and its hash has been verified.
        """
        return self._run(downloading.download(self._session, Target(repo, type, revision), path, to, progress=progress))

    def download_all(
        self,
        repo: str,
        to: Path,
        *,
        type: str | None = None,  # noqa: A002
        revision: str = "main",
        progress: Progress | None = None,
    ) -> Path:
        """Download all files of a commit into the folder `to`."""
        return self._run(downloading.snapshot(self._session, Target(repo, type, revision), to, progress=progress))

    # Organizations.

    def get_organization(self, name: str) -> Organization:
        return self._run(people.organization(self._session, name))

    def list_members(self, name: str, *, search: str | None = None, limit: int | None = None) -> list[Member]:
        return self._run(people.members(self._session, name, search, limit))

    def set_member_role(self, name: str, user: str, role: str) -> None:
        self._run(people.set_role(self._session, name, user, role))

    def remove_member(self, name: str, user: str) -> None:
        """Remove a member from an organization. Members may remove themselves; only admins may remove others."""
        self._run(people.remove_member(self._session, name, user))

    def export_audit_log(self, name: str, *, query: str | None = None) -> list[AuditEntry]:
        """Export the audit log of an organization, newest first.

        `query` filters as on the web page, for example `type:oauth.token author:ada`.
        """
        return self._run(people.audit_log(self._session, name, query))
