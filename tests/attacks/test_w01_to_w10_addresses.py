"""W1-W10: the address of a webhook's host is checked at each delivery, and an IP address in its URL when it is
saved.
"""

from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path

import httpx
import pytest
from tests.bed.egress_hub import DEADLINE, LONG, OK, EgressHub, deliver, run_egress_hub
from tests.egress.dialled import dialled
from tests.egress.farend import Server, answering, serving

NO_ANSWER = "No answer from the address."
PRIVATE = "url: This address is not allowed: it is private, and HUBGATE_EGRESS_ALLOW does not allow its network."
LOOPBACK, LOOPBACK_6 = (
    f"{PRIVATE} Start the hub with HUBGATE_EGRESS_ALLOW={network}, or use `hubgate webhooks listen`."
    for network in ("127.0.0.0/8", "::1/128")
)
RESERVED = "url: This address is not allowed: it is reserved."

BLOCKED = {
    "W1": "127.0.0.1 127.0.0.2 127.255.255.254 ::1",
    "W2": "0.0.0.0 0.1.2.3 ::",
    "W3": "10.0.0.1 172.16.0.1 172.31.255.255 192.168.0.1 fc00::1 fd12:3456::1 fe80::1 fec0::1",
    "W4": "169.254.169.254 169.254.170.2 168.63.129.16 100.100.100.200 fd00:ec2::254 fd20:ce::254",
    "W5": "100.64.0.1 100.127.255.255",
    "W6": "::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:169.254.169.254 ::ffff:0:127.0.0.1 ::127.0.0.1",
    "W7": (
        "64:ff9b::7f00:1 64:ff9b::a9fe:a9fe 64:ff9b:1::1 2002:7f00:1:: 2002:a9fe:a9fe:: 2002:a00:1::1"
        " 2001:0:4136:e378:8000:63bf:80ff:fffe 2001:0:4136:e378:8000:63bf:5601:5601"
    ),
    "others": (
        "192.0.0.1 192.0.2.1 192.88.99.1 198.18.0.1 198.51.100.1 203.0.113.1 224.0.0.1 239.255.255.255 240.0.0.1"
        " 255.255.255.255 100::1 2001:db8::1 3fff::1 5f00::1 ff02::1 4000::1"
    ),
}
ADDRESSES = [(line, address) for line, addresses in BLOCKED.items() for address in addresses.split()]


@pytest.fixture
def server() -> Iterator[Server]:
    with serving(answering(OK)) as started:
        yield started


def literal(address: str) -> str:
    return f"[{address}]" if ":" in address else address


def hosts_of(addresses: list[str]) -> dict[str, list[list[str]]]:
    return {f"h{number}.example": [[address]] for number, address in enumerate(addresses)}


def test_w1_to_w7_host_that_resolves_to_a_blocked_network_is_not_called(
    sqlite_template: Path, tmp_path: Path, server: Server
) -> None:
    names = hosts_of([address for _, address in ADDRESSES])
    with run_egress_hub(sqlite_template, tmp_path, names, allowed=()) as here:  # type: ignore[arg-type]
        webhooks = here.watch(*(f"http://{host}:{server.port}/" for host in names))
        here.change()
        with dialled() as dials:
            assert deliver(here.hub) == len(ADDRESSES)
        assert sorted(set(here.names.asked)) == sorted(names), "each was looked at"
        assert server.port not in {port for _, port in dials}
        assert server.connections == 0
        for (line, address), webhook in zip(ADDRESSES, webhooks, strict=True):
            told = here.last_delivery(webhook)
            (tried,) = told["tries"]
            assert (told["state"], tried["status"], tried["error"]) == ("retrying", None, NO_ANSWER), (line, address)


def test_w1_to_w7_blocked_ip_address_in_the_url_is_rejected(sqlite_template: Path, tmp_path: Path) -> None:
    """When the webhook is created, and when it is changed."""
    with run_egress_hub(sqlite_template, tmp_path, allowed=()) as here:
        (webhook,) = here.watch("https://1.1.1.1/hook")
        for line, address in ADDRESSES:
            for refused in tried_with(here, webhook, f"http://{literal(address)}:8080/"):
                assert refused.status_code == 422, (line, address)
                error, is_private = refused.json()["error"], line in ("W3", "W5") or address == "198.18.0.1"
                is_loopback = line == "W1" or address == "::ffff:127.0.0.1"
                assert not is_private or error == PRIVATE, (line, address)
                assert not is_loopback or error == (LOOPBACK_6 if address == "::1" else LOOPBACK), (line, address)
                assert error in (PRIVATE, LOOPBACK, LOOPBACK_6, RESERVED)
                assert line not in ("W2", "W4") or error == RESERVED, (line, address)
        for open_one in ("http://8.8.8.8/", "http://[2606:4700::1111]/", "http://[::ffff:8.8.8.8]/"):
            assert {answer.status_code for answer in tried_with(here, webhook, open_one)} == {200}, open_one


def tried_with(here: EgressHub, webhook: dict[str, str], url: str) -> list[httpx.Response]:
    path = "/api/settings/webhooks"
    made = here.ada.post(path, json={"url": url, "watched": [{"type": "user", "name": "ada"}]})
    return [made, here.ada.post(f"{path}/{webhook['id']}", json={"url": url, "watched": []})]


def test_w1_w3_w4_w5_allowed_networks_are_called_but_metadata_services_never(
    sqlite_template: Path, tmp_path: Path, server: Server
) -> None:
    """Even if all networks are allowed: these services return a machine's credentials."""
    everything = ("0.0.0.0/0", "::/0")
    opened = ["127.0.0.1", "10.255.255.1", "192.168.255.1", "100.64.255.1", "::1", "fd12:3456::1", "::ffff:127.0.0.1"]
    closed = [*BLOCKED["W4"].split(), *BLOCKED["W2"].split(), "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe"]
    names = hosts_of([*opened, *closed])
    with run_egress_hub(sqlite_template, tmp_path, names, allowed=everything) as here:  # type: ignore[arg-type]
        webhooks = here.watch(*(f"http://{host}:{server.port}/" for host in names))
        here.change()
        with dialled() as dials:
            deliver(here.hub, 2.0)
        reached = {ip_address(address) for address, port in dials if port == server.port}
        assert reached == {ip_address(address) for address in opened}
        assert [here.last_delivery(one)["state"] for one in (webhooks[0], webhooks[6])] == ["delivered", "delivered"]
        for address, webhook in zip(closed, webhooks[len(opened) :], strict=True):
            assert here.last_delivery(webhook)["state"] == "retrying"
            answers = tried_with(here, webhook, f"http://{literal(address)}/")
            assert {answer.status_code for answer in answers} == {422}, address


SPELLINGS = """
    2130706433 0177.0.0.1 127.1 127.0.1 0x7f.1 0x7f000001 017700000001 0x7f.0x0.0x0.0x1 127.0.0.0x1 0 0x 1.2.3.4.5
    256.1.1.1 1.1.1 127.0.0.1.. foo.0x7f foo.1 ①②⑦.⓪.⓪.① １２７.０.０.１ 127。0。0。1 [::1%25lo] [::1%lo] [127.0.0.1]
    [::ffff:127.0.0.1 ::1 [v1.a] [] [::1]x %31%32%37.0.0.1 lоcalhost münchen.example exa_mple..com -a.example a-.example
""".split()  # noqa: RUF001, SIM905


def test_w8_odd_spellings_of_a_blocked_address_are_rejected(sqlite_template: Path, tmp_path: Path) -> None:
    with run_egress_hub(sqlite_template, tmp_path) as here:
        (webhook,) = here.watch("https://ci.example/hook")
        for host in SPELLINGS:
            for url in (f"http://{host}/", f"http://{host}:8080/a"):
                for refused in tried_with(here, webhook, url):
                    assert refused.status_code == 422, url
                    assert refused.json()["error"].startswith("url: This address is not allowed: "), url
        good = (
            "http://127.0.0.1./ http://xn--mnchen-3ya.example/ http://CI.Example/ http://a_b.example/ http://localhost/"
        )
        for url in good.split():
            assert {answer.status_code for answer in tried_with(here, webhook, url)} == {200}, url


def test_w9_host_that_later_resolves_to_a_private_address_is_not_called(
    sqlite_template: Path, tmp_path: Path, server: Server
) -> None:
    """At the next delivery it resolves to a private address: neither that nor the open connection is used."""
    names = {"turn.example": [["127.0.0.1"], ["10.0.0.1"], ["169.254.169.254"], ["127.0.0.1"]]}
    with run_egress_hub(sqlite_template, tmp_path, names) as here:  # type: ignore[arg-type]
        (webhook,) = here.watch(f"http://turn.example:{server.port}/")
        states, dialled_to = [], set()
        for number, seconds in enumerate((LONG, DEADLINE, DEADLINE, LONG)):
            here.change(f"repo{number}")
            with dialled() as dials:
                assert deliver(here.hub, seconds) == 1
            dialled_to |= {address for address, port in dials if port == server.port}
            states.append(here.last_delivery(webhook)["state"])
        assert states == ["delivered", "retrying", "retrying", "delivered"]
        assert here.names.asked == ["turn.example"] * 4, "once for each try"
        assert dialled_to == {"127.0.0.1"}


@pytest.mark.parametrize(
    "addresses",
    [["127.0.0.1", "10.0.0.1"], ["10.0.0.1", "127.0.0.1"], ["127.0.0.1", "::ffff:169.254.169.254"], []],
)
def test_w10_one_blocked_address_blocks_the_host(
    sqlite_template: Path, tmp_path: Path, server: Server, addresses: list[str]
) -> None:
    with run_egress_hub(sqlite_template, tmp_path, {"mixed.example": [addresses]}) as here:
        (webhook,) = here.watch(f"http://mixed.example:{server.port}/")
        here.change()
        deliver(here.hub)
        assert here.last_delivery(webhook)["state"] == "retrying"
    assert server.connections == 0
