"""What an organization's admins allow its app to exchange tokens for: networks, roles, scopes, a daily quota."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.bed.apps import SCOPES, Client
from tests.bed.engines import Engine, settings_for
from tests.bed.exchange import GRANT, USER_EMAIL, create_exchange_app, exchange_token, send_exchange
from tests.bed.organizations import entries_of
from tests.bed.people import api, create_organization, create_token, create_user
from tests.bed.running_hub import RunningHub, run_hub

from hubgate.server.accounts.model import Organization

DAY = 24 * 60 * 60


@pytest.fixture
def behind_proxy(engine: Engine, tmp_path: Path) -> Iterator[RunningHub]:
    """So that requests may have any client address."""
    with run_hub(settings_for(engine.fresh_url(), tmp_path, trusted_proxies="127.0.0.0/8")) as hub:
        yield hub


class Bench:
    """An organization with a member of each role, and its app."""

    def __init__(self, hub: RunningHub) -> None:
        ada, *_ = [create_user(hub, name) for name in ("ada", "bob", "carol", "dave")]
        self.hub, self.admins = hub, create_token(hub, ada)
        self.acme: Organization = create_organization(hub, "acme", ada, bob="write", carol="contributor", dave="read")
        self.client: Client = create_exchange_app(hub, self.acme)

    def limit(self, **limits: Any) -> None:
        with api(self.hub, self.admins) as script:
            answer = script.patch(f"/api/organizations/acme/settings/applications/{self.client.id}", json=limits)
            assert answer.status_code == 200, answer.text

    def ask_from(self, address: str) -> httpx.Response:
        form = {"grant_type": GRANT, "subject_token": "bob@example.org", "subject_token_type": USER_EMAIL}
        with self.hub.client(headers={"x-forwarded-for": address}) as http:
            return http.post("/oauth/token", data=form, auth=self.client.basic)

    def results(self) -> list[str]:
        """The results of all exchanges in the audit log."""
        return sorted(e["data"]["result"] for e in entries_of(self.hub, self.acme) if e["type"] == "oauth.token")


def status_and_error(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json().get("error", "")


@pytest.mark.one_engine
@pytest.mark.parametrize(
    ("networks", "inside", "outside"),
    [
        (["203.0.113.0/24"], ["203.0.113.0", "203.0.113.255", "::ffff:203.0.113.7"], ["203.0.114.0", "::1"]),
        (["198.51.100.7"], ["198.51.100.7", "::ffff:c633:6407"], ["198.51.100.8", "::198.51.100.7"]),
        (["2001:db8::/32"], ["2001:db8::1", "2001:DB8:ffff::"], ["2001:db9::1", "127.0.0.1", "32.1.13.184"]),
        (["::ffff:203.0.113.0/120"], ["203.0.113.9", "::ffff:203.0.113.9"], ["203.0.114.9", "::9"]),
        (["10.0.0.0/8", "2001:db8::/32"], ["10.1.2.3", "2001:db8::2"], ["11.0.0.1", "fe80::1"]),
        (["0.0.0.0/0"], ["8.8.8.8", "::ffff:8.8.8.8"], ["2001:db8::1"]),
    ],
)
def test_networks_are_limited(
    behind_proxy: RunningHub, networks: list[str], inside: list[str], outside: list[str]
) -> None:
    bench = Bench(behind_proxy)
    bench.limit(allowedNetworks=networks)
    for address in inside:
        assert bench.ask_from(address).status_code == 200, address
    for address in outside:
        refused = bench.ask_from(address)
        assert status_and_error(refused) == (401, "invalid_client"), address
        assert refused.headers["www-authenticate"].startswith("Basic")
    assert bench.results() == ["granted"] * len(inside) + ["refused"] * len(outside)
    asked_from = {entry["ip"] for entry in entries_of(bench.hub, bench.acme) if entry["type"] == "oauth.token"}
    assert len(asked_from) > 1, "the log has where each came from"
    bench.limit(allowedNetworks=[])
    for address in outside:
        assert bench.ask_from(address).status_code == 200


@pytest.mark.one_engine
def test_roles_are_limited(hub: RunningHub) -> None:
    bench = Bench(hub)
    bench.limit(allowedRoles=["write", "contributor"])
    unknown = send_exchange(bench.client, "nobody@example.org")
    for name in ("ada", "dave"):
        refused = send_exchange(bench.client, f"{name}@example.org")
        assert status_and_error(refused) == (400, "invalid_grant")
        uninteresting = {"error_uri": ""}
        assert refused.json() | uninteresting == unknown.json() | uninteresting, "as if there were no such member"
    for name in ("bob", "carol"):
        exchange_token(bench.client, f"{name}@example.org")
    bench.limit(allowedRoles=[])
    exchange_token(bench.client, "dave@example.org")


@pytest.mark.one_engine
def test_scopes_are_limited(hub: RunningHub) -> None:
    bench = Bench(hub)
    bench.limit(allowedScopes=["read-repos", "email"])
    assert set(exchange_token(bench.client, "bob@example.org")["scope"].split()) == {"read-repos", "email"}
    assert exchange_token(bench.client, "bob@example.org", scope="email")["scope"] == "email"
    for asked in ("openid", "email openid", "jobs", "fly", "email,read-repos"):
        assert status_and_error(send_exchange(bench.client, "bob@example.org", scope=asked)) == (
            400,
            "invalid_scope",
        ), asked
    bench.limit(allowedScopes=[])
    assert set(exchange_token(bench.client, "bob@example.org")["scope"].split()) == set(SCOPES)


def test_daily_quota_is_enforced(hub: RunningHub) -> None:
    bench = Bench(hub)
    bench.limit(dailyQuota=3)
    for _ in range(5):
        assert status_and_error(send_exchange(bench.client, "nobody@example.org")) == (400, "invalid_grant")
    for _ in range(3):
        exchange_token(bench.client, "bob@example.org")
    hub.clock.advance(3600)
    for _ in range(2):
        refused = send_exchange(bench.client, "bob@example.org")
        assert status_and_error(refused) == (429, "temporarily_unavailable")
        assert int(refused.headers["retry-after"]) == DAY - 3600
    assert bench.results() == ["granted"] * 3 + ["refused"] * 7
    # A request refused for another reason still names that reason.
    assert status_and_error(send_exchange(bench.client, "nobody@example.org")) == (400, "invalid_grant")
    bench.limit(dailyQuota=4)
    exchange_token(bench.client, "bob@example.org")
    assert status_and_error(send_exchange(bench.client, "bob@example.org")) == (429, "temporarily_unavailable")
    hub.clock.advance(DAY - 3600)
    exchange_token(bench.client, "bob@example.org")
    bench.limit(dailyQuota=None)
    for _ in range(6):
        exchange_token(bench.client, "bob@example.org")


def test_each_app_has_its_own_quota(hub: RunningHub) -> None:
    bench = Bench(hub)
    bench.limit(dailyQuota=1)
    other = create_exchange_app(hub, bench.acme, name="Other")
    exchange_token(bench.client, "bob@example.org")
    assert status_and_error(send_exchange(bench.client, "bob@example.org")) == (429, "temporarily_unavailable")
    for _ in range(2):
        exchange_token(other, "bob@example.org")
