"""Setup for tests of webhooks that an app creates for a user."""

from email.message import EmailMessage

import httpx
from tests.bed.apps import approve, create_app, redirect_parameters
from tests.bed.people import api, browser_of, create_organization, create_token, create_user, mails_to
from tests.bed.repos import create_commit, create_repo
from tests.bed.running_hub import RunningHub
from tests.bed.webhooks import Receiver, settle

from hubgate.server.accounts.model import Organization
from hubgate.server.resources import Hub
from hubgate.server.webhooks.permissions.grants import GrantChecks

PATH, ACME_PATH = "/api/settings/webhooks", "/api/organizations/acme/settings/webhooks"
SCOPES = ("openid", "profile", "webhooks", "read-repos", "contribute-repos")
REPOS = ("ada/secret", "acme/secret", "beta/secret", "ada/open")
WATCHED = ("user:ada", "org:acme", "org:beta", "model:acme/secret")


class AppWebhookScenario:
    """A user, two organizations, private repos of all three, and an app of another developer."""

    def __init__(self, hub: RunningHub) -> None:
        self.hub = hub
        self.ada = create_user(hub, "ada")
        self.acme, self.beta = (create_organization(hub, name, self.ada) for name in ("acme", "beta"))
        self.app = create_app(hub, create_user(hub, "olga"), scopes=SCOPES)
        self.token = create_token(hub, self.ada)
        self.edits = 0
        with api(hub, self.token) as owner:
            for repo in REPOS:
                create_repo(owner, repo, private=repo.endswith("secret"))
        settle(hub)

    def grant(self, scope: str, *granted: Organization) -> str:
        with browser_of(self.hub, self.ada) as browser:
            address = self.app.address(scope=scope, prompt="consent")
            redirect = approve(browser, address, orgs=[organization.id for organization in granted])
        token: str = self.app.redeem(redirect_parameters(redirect)["code"]).json()["access_token"]
        return token

    def repos_received(self, receiver: Receiver) -> set[str]:
        """Change every repo; the repos for which the receiver got events."""
        receiver.received.clear()
        self.edits += 1
        with api(self.hub, self.token) as owner:
            for repo in REPOS:
                create_commit(owner, repo, {"a.txt": str(self.edits).encode()})
        settle(self.hub)
        return {received.json["repo"]["name"] for received in receiver.received}

    def check_grants(self) -> None:
        """Run the background job that checks the grants of webhooks."""

        async def work(opened: Hub) -> None:
            while await GrantChecks(opened.webhooks).step():
                pass

        self.hub.call(work)

    def mails(self) -> list[EmailMessage]:
        async def send(opened: Hub) -> None:
            while await opened.outbox.send_due():
                pass

        self.hub.call(send)
        return [mail for mail in mails_to(self.hub, "ada@example.org", 0) if mail["subject"].startswith("Webhook ")]

    def state(self, webhook: dict[str, str], path: str = PATH) -> str | bool:
        with api(self.hub, self.token) as owner:
            state: str | bool = owner.get(f"{path}/{webhook['id']}").json()["webhook"]["disabled"]
        return state

    def connected(self, method: str, **body: object) -> httpx.Response:
        with api(self.hub, self.token) as owner:
            path = f"/api/settings/connected-apps/{self.app.id}"
            return owner.request(method, path, json=body or None)
