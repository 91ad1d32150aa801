"""O40-O42: which apps may exchange tokens, and that a refusal reveals nothing about users."""

import statistics
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import httpx
import pytest
from msgspec.structs import replace
from tests.bed.apps import Client, create_app
from tests.bed.concurrency import run_concurrently
from tests.bed.exchange import GRANT, USER_EMAIL, create_exchange_app, exchange_token, send_exchange
from tests.bed.lean_http import LeanClient
from tests.bed.people import api, create_organization, create_token, create_user
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts import operator_actions, own_account, store
from hubgate.server.accounts.model import Organization, User, Visitor
from hubgate.server.accounts.organizations import members, settings
from hubgate.server.accounts.roles import Role
from hubgate.server.audit.model import SYSTEM
from hubgate.server.errors import HubError
from hubgate.server.oauth.apps import management, privileges
from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.exchange import store as exchange_store
from hubgate.server.oauth.exchange.exchange import exchange
from hubgate.server.oauth.exchange.model import Subject
from hubgate.server.oauth.tokens import issuance
from hubgate.server.oauth.tokens.issuance import TokenDetails
from hubgate.server.resources import Hub
from hubgate.server.secret import fingerprint

NOT_THE_CLIENT, NO_MEMBER = (401, "invalid_client"), (400, "invalid_grant")


def status_and_error(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json().get("error", "a token")


@pytest.fixture
def ada(hub: RunningHub) -> User:
    return create_user(hub, "ada")


@pytest.fixture
def acme(hub: RunningHub, ada: User) -> Organization:
    create_user(hub, "bob")
    return create_organization(hub, "acme", ada, bob="write")


@pytest.fixture
def client(hub: RunningHub, acme: Organization) -> Client:
    return create_exchange_app(hub, acme)


def log_of(hub: RunningHub, admin: User) -> list[dict[str, Any]]:
    """Newest entry first."""
    with api(hub, create_token(hub, admin)) as script:
        found = script.get("/api/organizations/acme/audit-log/export?q=type:oauth.token").json()
    return list(found)


def limit(client: Client, **limits: Any) -> None:
    def change(app: App) -> App:
        return replace(app, exchange=replace(app.exchange, **limits))

    client.hub.call(lambda opened: management.update(opened.oauth, client.app, change, SYSTEM))


@pytest.mark.one_engine
def test_o40_apps_without_permission_cannot_exchange(
    hub: RunningHub, acme: Organization, client: Client, ada: User
) -> None:
    """Without the privilege, an organization, the plan or a secret."""
    team = create_organization(hub, "team", ada, plan="team")
    off_plan = create_app(hub, organization=team)
    hub.call(lambda opened: privileges.set_exchange(opened.oauth, off_plan.id, True, SYSTEM))
    for refused in (create_app(hub, organization=acme), create_app(hub, ada), off_plan):
        answer = send_exchange(refused, "ada@example.org")
        assert status_and_error(answer) == NOT_THE_CLIENT
        assert answer.headers["www-authenticate"].startswith("Basic")
        assert answer.headers["cache-control"] == "no-store"
    public = create_exchange_app(hub, acme, confidential=False)
    form = {"grant_type": GRANT, "subject_token": "ada@example.org", "subject_token_type": USER_EMAIL}
    with hub.client() as http:
        assert status_and_error(http.post("/oauth/token", data={**form, "client_id": public.id})) == NOT_THE_CLIENT
        assert status_and_error(http.post("/oauth/token", data=form, auth=(public.id, ""))) == NOT_THE_CLIENT
    assert status_and_error(send_exchange(client, "ada@example.org")) == (200, "a token")


@pytest.mark.one_engine
def test_o40_secret_in_the_body_is_rejected(hub: RunningHub, client: Client, ada: User) -> None:
    """It could be in logged bodies. The app is authenticated all the same, so its organization's log has an entry."""
    form = {"grant_type": GRANT, "subject_token": "bob@example.org", "subject_token_type": USER_EMAIL}
    with hub.client() as http:
        proof = {"client_id": client.id, "client_secret": client.secret}
        assert status_and_error(http.post("/oauth/token", data={**form, **proof})) == NOT_THE_CLIENT
        assert status_and_error(http.post("/oauth/token", json={**form, **proof})) == NOT_THE_CLIENT
        both = http.post("/oauth/token", data={**form, **proof}, auth=client.basic)
        assert status_and_error(both) == (400, "invalid_request")
    assert [entry["data"]["error"] for entry in log_of(hub, ada)] == ["invalid_client"] * 2


@pytest.mark.one_engine
def test_o40_wrong_secret_is_not_in_the_audit_log(hub: RunningHub, client: Client, ada: User) -> None:
    """Otherwise strangers could fill an organization's log."""
    form = {"grant_type": GRANT, "subject_token": "bob@example.org", "subject_token_type": USER_EMAIL}
    with hub.client() as http:
        for auth in ((client.id, "hfcs_wrong"), (client.id, ""), ("nobody", client.secret or "")):
            assert status_and_error(http.post("/oauth/token", data=form, auth=auth)) == NOT_THE_CLIENT
        without = http.post("/oauth/token", data=form)
        assert status_and_error(without) == NOT_THE_CLIENT, "no proof at all is a failed one (RFC 6749, section 5.2)"
        assert without.headers["www-authenticate"].startswith("Basic")
        assert status_and_error(http.post("/oauth/token", data={**form, "client_id": "hubgate-cli"})) == NOT_THE_CLIENT
    assert log_of(hub, ada) == []


@pytest.mark.one_engine
def test_o40_paused_app_or_foreign_address_cannot_exchange(client: Client) -> None:
    for limits in ({"paused": True}, {"networks": ("203.0.113.0/24", "2001:db8::/32")}):
        limit(client, **limits)
        assert status_and_error(send_exchange(client, "bob@example.org")) == NOT_THE_CLIENT
        limit(client, paused=False, networks=None)
        assert status_and_error(send_exchange(client, "bob@example.org")) == (200, "a token")
    limit(client, networks=("127.0.0.0/8",))
    assert status_and_error(send_exchange(client, "bob@example.org")) == (200, "a token")


def test_o40_token_of_an_exchange_that_raced_a_revocation_stays_invalid(
    hub: RunningHub, acme: Organization, client: Client, ada: User
) -> None:
    """The token has a later time than the pause or the loss of the privilege or plan.

    It must not become valid when that is restored.
    """

    def paused(is_paused: bool) -> None:
        limit(client, paused=is_paused)

    def privileged(has_it: bool) -> None:
        hub.call(lambda opened: privileges.set_exchange(opened.oauth, client.id, has_it, SYSTEM))

    def on_plan(is_on: bool) -> None:
        plan = "enterprise" if is_on else "free"
        hub.call(lambda opened: settings.set_plan(opened.accounts, acme, plan, SYSTEM))

    gates: list[tuple[Callable[[], None], Callable[[], None]]] = [
        (partial(paused, True), partial(paused, False)),
        (partial(privileged, False), partial(privileged, True)),
        (partial(on_plan, False), partial(on_plan, True)),
    ]
    for shut, opened_again in gates:
        shut()
        hub.clock.advance(1)
        token = hub.call(_issue_unchecked(client, ada))
        hub.clock.advance(1)
        opened_again()
        with api(hub, token) as program:
            assert program.get("/api/whoami-v2").status_code == 401
    with api(hub, hub.call(_issue_unchecked(client, ada))) as program:
        assert program.get("/api/whoami-v2").status_code == 200, "it was the time alone"


def test_o40_change_between_the_decision_and_the_token_wins(
    hub: RunningHub, acme: Organization, client: Client, ada: User
) -> None:
    """An exchange decides before it writes. The statement that writes requires that nothing has changed since."""
    visitor = Visitor("127.0.0.1", "test")

    async def read(opened: Hub) -> Subject:
        secret, now = fingerprint(client.secret or ""), opened.clock()
        found = await exchange_store.find_with_secret(opened.db, client.id, secret, "bob@example.org", now)
        assert found is not None
        return found

    def outcome(read_before: Subject) -> str:
        async def work(opened: Hub) -> str:
            try:
                given = await exchange(opened.oauth, read_before, "bob@example.org", None, visitor)
            except HubError as error:
                return str(error.code)
            return given.scopes

        return hub.call(work)

    def set_role(role: Role) -> None:
        hub.call(lambda opened: members.change_role(opened.accounts, acme, bob, role, SYSTEM))

    limit(client, roles=("write",))
    before = hub.call(read)
    assert before.member is not None
    bob = before.member.user
    assert outcome(before) == "read-repos email profile openid"
    set_role(Role.READ)
    assert outcome(before) == "invalid_grant"
    set_role(Role.WRITE)
    assert outcome(before) == "read-repos email profile openid"
    limit(client, scopes=("profile",), duration=600)
    assert outcome(before) == "profile"
    assert 600 in {entry["data"].get("expiresIn") for entry in log_of(hub, ada)}
    limit(client, daily_quota=1)
    assert [outcome(before), outcome(before)] == ["profile", "temporarily_unavailable"]
    limit(client, paused=True)
    assert outcome(before) == "invalid_client"
    results = sorted(entry["data"]["result"] for entry in log_of(hub, ada))
    assert results == [*["granted"] * 4, *["refused"] * 3], "all of them audited"


def _issue_unchecked(client: Client, user: User) -> Callable[[Hub], Awaitable[str]]:
    """Issue the token that an exchange would issue, without its checks."""
    wanted = TokenDetails(client.id, user.id, None, client.app.org_id, "read-repos", "family", None, 3600)
    return lambda opened: opened.db.write(lambda tx: issuance.add_access_token(tx, wanted, opened.clock()))


@pytest.mark.one_engine
def test_o41_former_member_cannot_be_exchanged(hub: RunningHub, acme: Organization, client: Client, ada: User) -> None:
    bob = exchange_token(client, "bob@example.org")
    user = hub.call(lambda opened: _named(opened, "bob"))
    hub.clock.advance(1)
    hub.call(lambda opened: members.remove(opened.accounts, acme, user, SYSTEM))
    assert status_and_error(send_exchange(client, "bob@example.org")) == NO_MEMBER
    refused, granted = log_of(hub, ada)
    assert (granted["data"]["result"], granted["data"]["user"]) == ("granted", "bob")
    assert (refused["type"], refused["oauth"]["clientId"]) == ("oauth.token", client.id)
    assert (refused["data"]["result"], refused["data"]["error"]) == ("refused", "invalid_grant")
    assert (refused["data"]["subject"], refused["ip"]) == ("bob@example.org", "127.0.0.1")
    assert "httpx" in refused["userAgent"]
    with api(hub, bob["access_token"]) as program:
        assert program.get("/api/whoami-v2").status_code == 401
    hub.call(lambda opened: members.add(opened.accounts, acme, user, Role.READ, SYSTEM))
    with api(hub, bob["access_token"]) as program:
        assert program.get("/api/whoami-v2").status_code == 401, "what he had before he left does not come back"


async def _named(opened: Hub, name: str) -> User:
    user = await store.user_by_name(opened.db, name)
    assert user is not None
    return user


def test_o41_exchange_during_account_deletion_returns_a_token_or_no_member(hub: RunningHub, ada: User) -> None:
    """Each exchange returns a token or says that the member does not exist; none fails otherwise."""
    acme = create_organization(hub, "acme2", ada)
    client = create_exchange_app(hub, acme)
    for number in range(5):
        doomed = create_user(hub, f"doomed{number}")
        hub.call(lambda opened, user=doomed: members.add(opened.accounts, acme, user, Role.READ, SYSTEM))
        ask = partial(send_exchange, client, f"{doomed.name}@example.org")

        def delete(user: User = doomed) -> None:
            hub.call(lambda opened: own_account.delete(opened.accounts, user, SYSTEM))

        answers = [answer for answer in run_concurrently([delete, *[ask] * 8]) if answer is not None]
        assert {status_and_error(answer) for answer in answers} <= {(200, "a token"), NO_MEMBER}


@pytest.mark.one_engine
def test_o42_refusal_does_not_reveal_who_has_an_account(hub: RunningHub, acme: Organization, client: Client) -> None:
    """Unknown, foreign, unverified, disabled or of a role that is not allowed: the answer is the same."""
    create_user(hub, "eve")
    for name in ("carol", "dora"):
        create_user(hub, name, verified=name != "carol")
    hub.call(_join(acme, "carol"))
    hub.call(_join(acme, "dora"))
    dora = hub.call(lambda opened: _named(opened, "dora"))
    hub.call(lambda opened: operator_actions.disable(opened.accounts, dora))
    limit(client, roles=("admin",))
    told = {}
    for name in ("nobody", "eve", "carol", "dora", "bob"):
        answer = send_exchange(client, f"{name}@example.org")
        assert status_and_error(answer) == NO_MEMBER, name
        body = {key: value for key, value in answer.json().items() if key != "error_uri"}
        kept = {name: value for name, value in answer.headers.items() if name not in ("x-request-id", "date")}
        told[name] = (body, {key: value for key, value in kept.items() if key != "content-length"})
    assert all(one == told["nobody"] for one in told.values()), told
    assert status_and_error(send_exchange(client, "ada@example.org")) == (200, "a token")


def _join(organization: Organization, name: str) -> Callable[[Hub], Awaitable[None]]:
    async def work(opened: Hub) -> None:
        user = await _named(opened, name)
        await members.add(opened.accounts, organization, user, Role.WRITE, SYSTEM)

    return work


def test_o42_refusal_takes_as_long_for_unknown_accounts(hub: RunningHub, client: Client) -> None:
    create_user(hub, "eve")
    took: dict[str, list[float]] = {"eve": [], "nobody": []}
    with LeanClient(base_url=hub.url, auth=client.basic) as http:
        for turn in range(30):
            for name, times in took.items():
                form = {"grant_type": GRANT, "subject_token": f"{name}@example.org", "subject_token_type": USER_EMAIL}
                started = time.perf_counter()
                assert http.post("/oauth/token", data=form).status_code == 400
                if turn > 2:
                    times.append(time.perf_counter() - started)
    known, unknown = (statistics.median(times) for times in took.values())
    assert 0.4 < unknown / known < 2.5


@pytest.mark.one_engine
def test_o42_audit_log_reveals_nothing_about_strangers(hub: RunningHub, client: Client, ada: User) -> None:
    create_user(hub, "eve")
    for name in ("nobody", "eve"):
        send_exchange(client, f"{name}@example.org")
    first, second = ({**entry["data"], "subject": ""} for entry in log_of(hub, ada))
    assert first == second


def test_daily_exchange_quota_is_enforced(hub: RunningHub, client: Client, ada: User) -> None:
    """Refusals do not count; concurrent requests do not pass the limit."""
    limit(client, daily_quota=5)
    assert status_and_error(send_exchange(client, "nobody@example.org")) == NO_MEMBER
    answers = run_concurrently([partial(send_exchange, client, "bob@example.org")] * 12)
    over = (429, "temporarily_unavailable")
    assert sorted(status_and_error(answer) for answer in answers) == [(200, "a token")] * 5 + [over] * 7
    (retry_after,) = {answer.headers["retry-after"] for answer in answers if answer.status_code == 429}
    assert retry_after == "86400"
    results = [entry["data"]["result"] for entry in log_of(hub, ada)]
    assert sorted(results) == ["granted"] * 5 + ["refused"] * 8
    hub.clock.advance(86_401)
    assert status_and_error(send_exchange(client, "bob@example.org")) == (200, "a token")
