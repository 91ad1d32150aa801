"""W11-W17: which URLs and secrets a webhook may have, and that a receiver's answer never causes another request."""

from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.bed.egress_hub import LONG, EgressHub, deliver, run_egress_hub
from tests.bed.webhooks import secret_of
from tests.egress.dialled import dialled
from tests.egress.farend import answering, serving

from hubgate.server.egress.target import BLOCKED_PORTS

PATH = "/api/settings/webhooks"
# The Fetch standard's list of bad ports, and those of the operator's usual services.
BAD_PORTS = """
    0 1 7 9 11 13 15 17 19 20 21 22 23 25 37 42 43 53 69 77 79 87 95 101 102 103 104 109 110 111 113 115 117 119 123 135
    137 139 143 161 179 389 427 465 512 513 514 515 526 530 531 532 540 548 554 556 563 587 601 636 989 990 993 995 1719
    1720 1723 2049 3659 4045 4190 5060 5061 6000 6566 6665 6666 6667 6668 6669 6679 6697 10080
    2375 2376 3306 5432 6379 9200 11211 27017
"""


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 See", "307 Temporary", "308 Permanent"])
def test_w11_redirect_is_a_failure(sqlite_template: Path, tmp_path: Path, status: str) -> None:
    with serving(answering(b"")) as inner:
        answer = f"HTTP/1.1 {status}\r\nLocation: http://127.0.0.1:{inner.port}/\r\nContent-Length: 0\r\n\r\n"
        metadata = answer.replace(f"http://127.0.0.1:{inner.port}/", "http://169.254.169.254/latest/meta-data/")
        with serving(answering(answer.encode())) as one, serving(answering(metadata.encode())) as two:
            with run_egress_hub(sqlite_template, tmp_path) as here, dialled() as dials:
                webhooks = here.watch(*(f"http://127.0.0.1:{server.port}/" for server in (one, two)))
                here.change()
                assert deliver(here.hub, LONG) == 2
                for webhook in webhooks:
                    told = here.last_delivery(webhook)
                    assert (told["state"], told["status"]) == ("retrying", int(status[:3]))
            assert (one.connections, two.connections, inner.connections) == (1, 1, 0)
            assert not [address for address, _ in dials if address.startswith("169.")]


URLS = {
    "W12": (
        "http://ada@ci.example/ http://ada:pw@ci.example/ http://@ci.example/ http://:@ci.example/"
        " https://127.0.0.1@ci.example/ http://ci.example@127.0.0.1/ http://a%40b@ci.example/"
    ),
    "W13": r"http://ci.example\@127.0.0.1/ http:\\ci.example http://ci.example\.evil.example/ http://a/\b http:/\ci",
    "W14": (
        "file:///etc/passwd gopher://ci.example/_x ftp://ci.example/ javascript:alert(1) data:text/plain,x ws://ci.example/"
        " unix:///run/docker.sock jar:http://ci.example!/ dict://ci.example:11211/ ldap://ci.example/ //ci.example/"
        " ci.example /hook http: http:/// http://:80/ http://?a HTTP+UNIX://ci.example/"
    ),
    "fragment": "http://ci.example/#x http://ci.example/#",
    "port": "http://ci.example:65536/ http://ci.example:-1/ http://ci.example:a/ http://ci.example:80:80/ http://a:+80/",
}


def refused(here: EgressHub, webhook: dict[str, Any], **change: Any) -> set[tuple[int, str]]:
    """The answers to a change of a new and of an existing webhook: statuses and the named field."""
    new = {"url": "https://ci.example/hook", "watched": [{"type": "user", "name": "ada"}], **change}
    answers = [here.ada.post(PATH, json=new), here.ada.post(f"{PATH}/{webhook['id']}", json={"watched": [], **change})]
    return {(answer.status_code, field_of(answer)) for answer in answers}


def field_of(answer: httpx.Response) -> str:
    error: str = answer.json().get("error", "")
    return error.partition(":")[0]


def test_w12_to_w17_unsafe_urls_are_rejected(sqlite_template: Path, tmp_path: Path) -> None:
    assert {int(port) for port in BAD_PORTS.split()} == BLOCKED_PORTS
    with run_egress_hub(sqlite_template, tmp_path) as here:
        (webhook,) = here.watch("https://ci.example/hook")
        for line, urls in URLS.items():
            for url in urls.split():
                assert refused(here, webhook, url=url) == {(422, "url")}, (line, url)
        for mark in ("\r", "\n", "\r\n", "\t", "\0", " ", "\x7f", "\u2028", "\u0085", "ü", "🔑", '"', "<", "{"):
            for url in (f"http://ci.example/a{mark}b", f"http://ci.ex{mark}ample/", f"http://ci.example/{mark}"):
                assert {status for status, _ in refused(here, webhook, url=url)} == {422}, ("W15", url)
        for port in BAD_PORTS.split():
            assert refused(here, webhook, url=f"https://ci.example:{port}/") == {(422, "url")}, ("W17", port)
        for value in (1, True, [], {}, 1.5):
            assert {status for status, _ in refused(here, webhook, url=value)} == {422}, value
        longest = "http://ci.example/" + "a" * (2048 - len("http://ci.example/"))
        assert refused(here, webhook, url=longest + "a") == {(422, "url")}
        for url in (longest, "http://ci.example:8080/", "HTTPS://CI.example", "http://ci.example?a=b&c=%0d%0a"):
            assert {status for status, _ in refused(here, webhook, url=url)} == {200}, url


def test_w15_w16_unsafe_secrets_are_rejected(sqlite_template: Path, tmp_path: Path) -> None:
    with run_egress_hub(sqlite_template, tmp_path) as here:
        (webhook,) = here.watch("https://ci.example/hook", secret="before")
        bad = [
            "a\rb",
            "a\nb",
            "a\r\nX-Evil: 1",
            "a\tb",
            "\x1f",
            "a\x7f",
            " a",
            "a ",
            " ",
            "ä",
            "🔑",
            "\uff41",
            "a" * 257,
            "\x80",
        ]
        for secret in [*bad, "whsec_"]:
            assert refused(here, webhook, secret=secret) == {(422, "secret")}, secret
        for odd in ("a\0b", 1, True, ["a"], {"a": "b"}):
            assert {status for status, _ in refused(here, webhook, secret=odd)} == {422}, odd
        assert secret_of(here.hub, webhook["id"]) == "before", "a rejected change changes nothing"
        for secret in ("a", "a" * 256, "a b", "~!@#$%^&*()_+{}|:<>?`-=[]\\;',./\"", "whsec_not base64"):
            assert {status for status, _ in refused(here, webhook, secret=secret)} == {200}, secret


def test_w15_escaped_line_breaks_in_a_query_stay_escaped(sqlite_template: Path, tmp_path: Path) -> None:
    seen: list[bytes] = []
    ok = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
    with serving(answering(ok, seen)) as server, run_egress_hub(sqlite_template, tmp_path) as here:
        here.watch(
            f"http://127.0.0.1:{server.port}/%0d%0aX-Evil:%201?%0d%0a=%0D%0AX-Evil:1",
            secret="x-evil: 1; \\r\\nx-evil: 1",
        )
        here.change()
        assert deliver(here.hub, LONG) == 1
    (request,) = seen
    lines = request.partition(b"\r\n\r\n")[0].split(b"\r\n")
    assert lines[0] == b"POST /%0d%0aX-Evil:%201?%0d%0a=%0D%0AX-Evil:1 HTTP/1.1"
    names = [line.partition(b":")[0].lower() for line in lines[1:]]
    assert b"x-evil" not in names
    assert len(names) == len(set(names))
    assert b"X-Webhook-Secret: x-evil: 1; \\r\\nx-evil: 1" in lines


def test_w14_malformed_bodies_are_rejected(sqlite_template: Path, tmp_path: Path) -> None:
    """400 for unparseable, 422 for well-formed but not allowed, never 500."""
    with run_egress_hub(sqlite_template, tmp_path) as here:
        (webhook,) = here.watch("https://ci.example/hook")
        for place in (PATH, f"{PATH}/{webhook['id']}"):
            for body in (b"", b"{", b'{"url": "x', b"\xff\xfe", b"{" * 100_000, b"nul", b"'a'"):
                answer = here.ada.post(place, content=body, headers={"content-type": "application/json"})
                assert answer.status_code in (400, 413), (place, body[:20], answer.status_code)
            for value in ([], "text", 1, {"watched": "ada"}, {"watched": [1]}, {"watched": [{"type": "user"}]}):
                assert here.ada.post(place, json=value).status_code == 422, (place, value)
            large = here.ada.post(place, json={"url": "http://ci.example/" + "a" * 100_000})
            assert large.status_code == 413
        assert len(here.ada.get(PATH).json()) == 1


def test_w14_invalid_fields_are_rejected(sqlite_template: Path, tmp_path: Path) -> None:
    with run_egress_hub(sqlite_template, tmp_path) as here:
        (webhook,) = here.watch("https://ci.example/hook")
        user = {"type": "user", "name": "ada"}
        for watched in (
            [{"type": "team", "name": "ada"}],
            [{"type": "user", "name": "ada/tiny"}],
            [{"type": "model", "name": "ada"}],
            [{"type": "user", "name": ""}],
            [{"type": "user", "name": "аda"}],  # noqa: RUF001
            [{"type": "user", "name": "a\nb"}],
            [{"type": "user", "name": "a" * 97}],
            [user] * 101,
        ):
            assert refused(here, webhook, watched=watched) == {(422, "watched")}, watched
        for domains in (["repos"], ["repo", "x"], [""], ["Repo"]):
            assert refused(here, webhook, domains=domains) == {(422, "domains")}, domains
        for seconds in (-1, 604_801, 2**70):
            answer = here.ada.post(f"{PATH}/{webhook['id']}", json={"secret": "a", "overlapSeconds": seconds})
            assert answer.status_code in (400, 422), seconds
        many = [{"type": "user", "name": f"u{number}"} for number in range(100)]
        assert {status for status, _ in refused(here, webhook, watched=many)} == {200}
        for identity in ("x", "0" * 24, "%00", "..%2f..", "a" * 3000, webhook["id"].upper() + "x"):
            for method, tail in (("GET", ""), ("POST", ""), ("DELETE", ""), ("POST", "/test"), ("GET", "/logs")):
                answer = here.ada.request(method, f"{PATH}/{identity}{tail}", json={} if method == "POST" else None)
                assert answer.status_code in (400, 404, 414), (identity[:30], method, tail, answer.status_code)
