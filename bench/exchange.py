"""Token exchange (audited and durable before the response), device authorization, and whoami with exchanged tokens."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from tests.bed.exchange import GRANT, USER_EMAIL

from bench.harness import Table
from bench.http_requests import bearer_get, post_form
from bench.load import REPEAT, Request
from bench.operations import Operation, Subject, compare
from bench.sign_ins import USERS, create_user, run_concurrently
from bench.workspace import Workspace
from hubgate.server.accounts.model import Owner, User, Visitor
from hubgate.server.accounts.organizations import members, settings
from hubgate.server.accounts.roles import Role
from hubgate.server.audit.model import SYSTEM
from hubgate.server.oauth.apps import management, privileges
from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.exchange import store as exchange_store
from hubgate.server.oauth.exchange.exchange import exchange
from hubgate.server.resources import Hub

SCOPES = ("openid", "profile", "email", "read-repos")
# Exchanged tokens, each with an audit log entry, that are stored before measuring.
STORED = 5_000
_VISITOR = Visitor("127.0.0.1", "bench")


@dataclass(frozen=True)
class Exchanger:
    """An organization's app that may exchange tokens, and the members for whom it does."""

    hub: Hub
    app: App
    secret: str
    members: Sequence[User]

    async def exchanges(self) -> list[Request]:
        return [self._exchange(user, "profile read-repos") for user in self.members]

    async def exchanges_with_openid(self) -> list[Request]:
        return [self._exchange(user, "openid profile read-repos") for user in self.members]

    async def device_requests(self) -> list[Request]:
        """Device authorization requests, with client authentication as in an exchange."""
        return [self._form("/oauth/device", client_id=self.app.client_id)] * len(self.members)

    async def whoamis(self) -> list[Request]:
        async def token(user: User) -> str:
            return await _exchanged(self.hub, self.app, user, "profile")

        tokens = await run_concurrently(token, self.members)
        return [bearer_get("/api/whoami-v2", token) for token in tokens]

    def _exchange(self, user: User, scope: str) -> Request:
        subject = {"subject_token": user.email, "subject_token_type": USER_EMAIL}
        return self._form("/oauth/token", grant_type=GRANT, scope=scope, **subject)

    def _form(self, path: str, /, **fields: str) -> Request:
        return post_form(path, self.app.client_id, self.secret, **fields)


OPERATIONS = (
    Operation("exchange", REPEAT, Exchanger.exchanges),
    Operation("exchange with openid", REPEAT, Exchanger.exchanges_with_openid),
    Operation("device start", REPEAT, Exchanger.device_requests),
    Operation("whoami, exchanged token", REPEAT, Exchanger.whoamis),
)


def measure(workspace: Workspace) -> list[Table]:
    fixtures = partial(create_exchanger, stored=int(STORED * workspace.budget.scale))
    return compare(workspace, Subject("exchange", "Token exchange and devices", OPERATIONS, fixtures))


async def create_exchanger(hub: Hub, stored: int) -> Exchanger:
    users = await run_concurrently(partial(create_user, hub), [f"member-{number}" for number in range(USERS)])
    bridges = await settings.create(hub.accounts, users[0], "bridges", "", SYSTEM, "enterprise")
    await run_concurrently(lambda user: members.add(hub.accounts, bridges, user, Role.WRITE, SYSTEM), users[1:])
    draft = App("", "Bridge", scopes=SCOPES, confidential=True)
    app, secret = await management.create(hub.oauth, Owner(org_id=bridges.id), draft, SYSTEM)
    assert secret is not None
    app = await privileges.set_exchange(hub.oauth, app.client_id, True, SYSTEM)
    turns = [users[number % len(users)] for number in range(stored)]
    await run_concurrently(lambda user: _exchanged(hub, app, user, "read-repos"), turns)
    return Exchanger(hub, app, secret, users)


async def _exchanged(hub: Hub, app: App, user: User, scope: str) -> str:
    subject = await hub.db.read(lambda tx: exchange_store.find(tx, app.client_id, user.email))
    assert subject is not None
    return (await exchange(hub.oauth, subject, user.email, scope, _VISITOR)).access_token
