"""Setup for tests of webhooks that an app creates for a user."""

from email.message import EmailMessage

import httpx
from tests.bed.apps import answer_of, approve, make_app
from tests.bed.people import api, browser_of, mails_to, make_organization, make_token, make_user
from tests.bed.repos import committed, make_repo
from tests.bed.running import RunningHub
from tests.bed.watching import Receiver, settle

from hubgate.server.accounts.model import Organization
from hubgate.server.resources import Hub
from hubgate.server.webhooks.permissions.grants import GrantChecks

PATH, OF_ACME = "/api/settings/webhooks", "/api/organizations/acme/settings/webhooks"
SCOPES = ("openid", "profile", "webhooks", "read-repos", "contribute-repos")
REPOS = ("ada/secret", "acme/secret", "beta/secret", "ada/open")
WATCHED = ("user:ada", "org:acme", "org:beta", "model:acme/secret")


class Stage:
    """A user, two organizations, private repos of all three, and an app of another developer."""

    def __init__(self, hub: RunningHub) -> None:
        self.hub = hub
        self.ada = make_user(hub, "ada")
        self.acme, self.beta = (make_organization(hub, name, self.ada) for name in ("acme", "beta"))
        self.app = make_app(hub, make_user(hub, "olga"), scopes=SCOPES)
        self.token = make_token(hub, self.ada)
        self.edits = 0
        with api(hub, self.token) as owner:
            for repo in REPOS:
                make_repo(owner, repo, private=repo.endswith("secret"))
        settle(hub)

    def grant(self, scope: str, *granted: Organization) -> str:
        with browser_of(self.hub, self.ada) as browser:
            address = self.app.address(scope=scope, prompt="consent")
            redirect = approve(browser, address, orgs=[organization.id for organization in granted])
        token: str = self.app.redeem(answer_of(redirect)["code"]).json()["access_token"]
        return token

    def heard(self, receiver: Receiver) -> set[str]:
        """Change every repo, and return the repos for which a receiver got events."""
        receiver.received.clear()
        self.edits += 1
        with api(self.hub, self.token) as owner:
            for repo in REPOS:
                committed(owner, repo, {"a.txt": str(self.edits).encode()})
        settle(self.hub)
        return {received.json["repo"]["name"] for received in receiver.received}

    def follow(self) -> None:
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
