"""W26, W27, W36: only the operator's proxy is used, the hub never calls itself, and a test delivery has the same
limits.
"""

from collections.abc import Iterator
from functools import partial
from ipaddress import ip_network
from pathlib import Path

import pytest
from tests.bed.background_delivery import deliver_in_background
from tests.bed.egress_hub import LONG, OK, EgressHub, deliver, run_egress_hub
from tests.bed.engines import SqliteEngine, settings_for
from tests.bed.lean_http import LeanClient
from tests.bed.people import api, create_token, create_user
from tests.bed.processes import free_port
from tests.bed.running_hub import run_hub
from tests.bed.webhooks import create_webhook
from tests.egress.dialled import dialled
from tests.egress.farend import Names, Server, answering, serving

from hubgate.server.egress.client import Egress


@pytest.fixture
def server() -> Iterator[Server]:
    with serving(answering(OK)) as started:
        yield started


def test_w26_proxies_of_the_environment_are_ignored(
    sqlite_template: Path, tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(answering(OK)) as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        monkeypatch.delenv("NO_PROXY", raising=False)
        with run_egress_hub(sqlite_template, tmp_path, {"ci.example": [["127.0.0.1"]]}) as here:
            (webhook,) = here.watch(f"http://ci.example:{server.port}/")
            here.change()
            deliver(here.hub, LONG)
            assert here.last_delivery(webhook)["state"] == "delivered"
        assert (proxy.connections, server.connections) == (0, 1)


def test_w26_operators_proxy_does_not_bypass_the_address_check(
    sqlite_template: Path, tmp_path: Path, server: Server
) -> None:
    """The proxy is asked for the checked address; for a blocked address it is not asked at all."""
    asked: list[bytes] = []
    refuses = b"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n"
    with serving(answering(refuses, asked)) as proxy:
        settings = settings_for(
            SqliteEngine(sqlite_template, tmp_path).fresh_url(), tmp_path, egress_proxy=f"http://127.0.0.1:{proxy.port}"
        )
        names = Names({"ci.example": [["127.0.0.1"]], "inside.example": [["10.0.0.1"]]})
        egress = Egress([ip_network("127.0.0.0/8")], settings.egress_proxy, resolve=names)
        with run_hub(settings, egress) as hub, api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
            here = EgressHub(hub, names, ada)
            webhooks = here.watch(*(f"http://{host}.example:{server.port}/" for host in ("ci", "inside")))
            here.change()
            deliver(hub)
            assert [here.last_delivery(one)["state"] for one in webhooks] == ["retrying", "retrying"]
    assert [request.split(b"\r\n")[0] for request in asked] == [b"CONNECT 127.0.0.1:%d HTTP/1.1" % server.port]
    assert server.connections == 0, "and there is no other way"


@pytest.mark.parametrize("listens", ["127.0.0.1", "0.0.0.0", "localhost"])
def test_w27_hub_does_not_call_itself(sqlite_template: Path, tmp_path: Path, listens: str) -> None:
    """By its public name, by its listening address, or by another name that leads there."""
    url = SqliteEngine(sqlite_template, tmp_path).fresh_url()
    allow = "127.0.0.0/8,::1/128"
    settings = settings_for(url, tmp_path, host=listens, egress_allow=allow, webhooks_per_owner="100")
    with run_hub(settings) as hub, api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        port = hub.settings.port
        here = EgressHub(hub, Names({}), ada)
        hosts = ["127.0.0.1", "127.0.0.1.", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "localhost", "LOCALHOST."]
        if listens == "0.0.0.0":
            hosts += ["127.0.0.2", "127.8.8.8"]
        webhooks = here.watch(*(f"http://{host}:{port}/api/repos/create" for host in hosts))
        here.change()
        with dialled() as dials:
            deliver(hub)
        for host, webhook in zip(hosts, webhooks, strict=True):
            assert here.last_delivery(webhook)["state"] == "retrying", host
        # The test itself calls the hub, but only before and after.
        assert port not in {number for _, number in dials}


def test_w27_hub_does_not_call_its_public_address(sqlite_template: Path, tmp_path: Path, server: Server) -> None:
    """Behind a proxy that answers for the hub, on another port."""
    url = SqliteEngine(sqlite_template, tmp_path).fresh_url()
    public = f"http://localhost:{server.port}"
    with run_hub(settings_for(url, tmp_path, base_url=public, egress_allow="127.0.0.0/8,::1/128")) as hub:
        token, (host, port) = create_token(hub, create_user(hub, "ada")), hub.address
        headers = {"authorization": f"Bearer {token}"}
        with LeanClient(base_url=f"http://{host}:{port}", headers=headers) as ada:
            here = EgressHub(hub, Names({}), ada)
            webhooks = here.watch(
                *(f"http://{name}:{server.port}/" for name in ("localhost", "LOCALHOST.", "127.0.0.1"))
            )
            here.change()
            deliver(hub)
            assert [here.last_delivery(one)["state"] for one in webhooks] == ["retrying"] * 3
    assert server.connections == 0


def test_w36_test_delivery_passes_the_same_address_check(sqlite_template: Path, tmp_path: Path, server: Server) -> None:
    names = {"inside.example": [["10.0.0.1"]], "ci.example": [["127.0.0.1"]]}
    send = partial(deliver, seconds=2.0)
    with run_egress_hub(sqlite_template, tmp_path, names) as here, deliver_in_background(here.hub, send):  # type: ignore[arg-type]
        inside, outside = here.watch(*(f"http://{host}.example:{server.port}/" for host in ("inside", "ci")))
        with dialled() as dials:
            answers = [here.ada.post(f"/api/settings/webhooks/{one['id']}/test") for one in (inside, outside)]
        assert [answer.json()["status"] for answer in answers] == [None, 200]
        assert "10.0.0.1" not in {address for address, _ in dials}
        (tried,) = here.last_delivery(inside)["tries"]
        assert tried["error"] == "No answer from the address."
    assert server.connections == 1


def test_w36_test_of_a_closed_port_takes_as_long_as_of_a_filtered_one(sqlite_template: Path, tmp_path: Path) -> None:
    port = free_port()
    names = {"inside.example": [["10.0.0.1"]]}
    with run_egress_hub(sqlite_template, tmp_path, names) as here, deliver_in_background(here.hub, deliver):  # type: ignore[arg-type]
        for url in (f"http://127.0.0.1:{port}/", "http://inside.example/"):
            webhook = create_webhook(here.ada, url, "user:ada")
            answer = here.ada.post(f"/api/settings/webhooks/{webhook['id']}/test")
            assert answer.json()["status"] is None
            assert answer.elapsed.total_seconds() >= 0.5, url
