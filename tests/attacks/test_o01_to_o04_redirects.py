"""O1-O4: a code is sent only to a registered redirect URI; only the port of a loopback URI may differ."""

import pytest
from tests.bed.apps import Client, approve, create_app, redirect_parameters
from tests.bed.people import browser_of, create_user
from tests.bed.running_hub import RunningHub

pytestmark = pytest.mark.one_engine

GOOD = "https://good.example/Path/callback"

O1_ALTERED = [
    GOOD + "/",
    GOOD + "/more",
    GOOD + "x",
    GOOD + "?extra=1",
    GOOD + "?",
    GOOD + "#fragment",
    GOOD + ";x",
    "https://good.example/Path",
    "https://good.example/",
    "https://good.example",
    "https://good.example/path/callback",
    "https://good.example/Path/Callback",
    "https://GOOD.example/Path/callback",
    "HTTPS://good.example/Path/callback",
    "http://good.example/Path/callback",
    "https://sub.good.example/Path/callback",
    "https://evil.example/?" + GOOD,
    "https://evil.example/" + GOOD,
    " " + GOOD,
    GOOD + " ",
    "https://good.example/Path/../Path/callback",
    "https://good.example//Path/callback",
    "//good.example/Path/callback",
    "/Path/callback",
    "callback",
]

O2_CONFUSING = [
    "https://good.example@evil.example/Path/callback",
    "https://good.example:x@evil.example/Path/callback",
    "https://good.example%40evil.example/Path/callback",
    "https://good.example.evil.example/Path/callback",
    "https://evil.example\\@good.example/Path/callback",
    "https://good.example\\.evil.example/Path/callback",
    "https:\\\\good.example\\Path\\callback",
    "https://evil.example%2f@good.example/Path/callback",
    "https://good.example%2fPath/callback",
    "https://good.example/Path%2fcallback",
    "https://good.example/Path%2Fcallback",
    GOOD + "%0d%0aLocation:%20https://evil.example/",
    GOOD + "\r\nLocation: https://evil.example/",
    GOOD + "\n",
    GOOD + "\t",
    GOOD + "\x00",
    "https://good.example\r\n.evil.example/Path/callback",
    "https://g\u043e\u043ed.example/Path/callback",
    "https://good.example\u3002evil.example/Path/callback",
    "javascript:alert(1)//" + GOOD,
    "data:text/html,x",
]


def assert_stopped(client: Client, redirect_uris: list[str]) -> None:
    """Each redirect URI is rejected without a redirect: signed in or not, by GET and POST, despite an earlier
    consent.
    """
    user = create_user(client.hub, "ada")
    with client.hub.client() as visitor, browser_of(client.hub, user) as browser:
        assert approve(browser, client.address()).status_code == 303
        for redirect_uri in redirect_uris:
            address = client.address(redirect_uri=redirect_uri)
            answers = [who.request(how, address) for who in (visitor, browser) for how in ("GET", "POST")]
            answers.append(browser.get(f"{address}&prompt=none"))
            for response in answers:
                assert response.status_code == 400, redirect_uri
                assert "location" not in response.headers, redirect_uri
                assert "evil.example" not in str(response.headers)


def test_o1_altered_redirect_uris_are_rejected(hub: RunningHub) -> None:
    assert_stopped(create_app(hub, None, redirect_uris=(GOOD,)), O1_ALTERED)


def test_o2_confusing_redirect_uris_are_rejected(hub: RunningHub) -> None:
    assert_stopped(create_app(hub, None, redirect_uris=(GOOD,)), O2_CONFUSING)


def test_o2_confusing_redirect_uris_are_rejected_with_origin_matching(hub: RunningHub) -> None:
    elsewhere = [uri for uri in O2_CONFUSING if not uri.startswith("https://good.example/")]
    assert len(elsewhere) > 10
    assert_stopped(create_app(hub, None, redirect_uris=(GOOD,), redirect_match="origin"), elsewhere)


ORIGIN = "https://good.example"
ANSWERS = [
    "?code=theirs&state=theirs&iss=https://evil.example",
    "?code=theirs",
    "?code",
    "?x=1&state=theirs",
    "?x=1;state=theirs",
    "?iss=https://evil.example",
    "?error=access_denied",
    "?error_description=x",
    "?error_uri=https://evil.example",
    "?%63ode=theirs",
    "?c%6fde=theirs",
    "?+code=theirs",
    "?CODE=theirs",
    "?code[]=theirs",
    "?code%5B0%5D=theirs",
]


def test_o1_origin_matching_rejects_response_parameters_in_the_redirect_uri(hub: RunningHub) -> None:
    """Otherwise an attacker could have a user signed in to the app as somebody else."""
    client = create_app(hub, None, redirect_uris=(GOOD,), redirect_match="origin")
    assert_stopped(client, [f"{ORIGIN}/Path/callback{answer}" for answer in ANSWERS] + [ORIGIN + ANSWERS[0]])
    with browser_of(hub, create_user(hub, "bob")) as browser:
        for query in ("?_target_url=%2F%3Fcode%3D1", "?zipcode=1", "?stateful=1&code_=1&error_page=1", "?=code", "?"):
            target = f"{ORIGIN}/any{query}"
            sent = approve(browser, client.address(redirect_uri=target, prompt="consent"))
            assert sent.headers["location"].startswith(target), query


def test_o1_registered_redirect_uri_may_contain_response_parameters(hub: RunningHub) -> None:
    for match in ("exact", "origin"):
        client = create_app(hub, None, redirect_uris=(f"{GOOD}?state=fixed",), redirect_match=match)
        with browser_of(hub, create_user(hub, f"ada-{match}")) as browser:
            assert approve(browser, client.address()).headers["location"].startswith(f"{GOOD}?state=fixed&code=")


@pytest.mark.parametrize("match", ["exact", "origin"])
def test_o1_other_spellings_of_the_origin_are_rejected(hub: RunningHub, match: str) -> None:
    client = create_app(hub, None, redirect_uris=(GOOD,), redirect_match=match)
    others = ["HTTPS://good.example", "https://GOOD.example", "https://good.example:443", "https://good.example:"]
    assert_stopped(client, [f"{other}/Path/callback" for other in others])


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]"])
def test_o3_only_the_port_of_a_loopback_redirect_uri_may_differ(hub: RunningHub, host: str) -> None:
    others = {"localhost", "127.0.0.1", "[::1]", "127.0.0.2", "localhost.evil.example", "0.0.0.0", "[::]"} - {host}
    client = create_app(hub, None, redirect_uris=(f"http://{host}/cb?a=1",))
    with browser_of(hub, create_user(hub, "ada")) as browser:
        for port in ("", ":1", ":3000", ":65535"):
            target = f"http://{host}{port}/cb?a=1"
            sent = approve(browser, client.address(redirect_uri=target, prompt="consent"))
            assert sent.headers["location"].startswith(f"{target}&code=")
            assert client.redeem(redirect_parameters(sent)["code"], redirect_uri=target).status_code == 200
        for stopped in (
            f"http://{host}:3000/other?a=1",
            f"http://{host}:3000/cb",
            f"http://{host}:3000/cb?a=2",
            f"http://{host}:3000/cb?a=1&b=2",
            f"http://{host}:3000/cb?a=1#f",
            f"https://{host}:3000/cb?a=1",
            f"http://user@{host}:3000/cb?a=1",
            f"http://{host}:3000@evil.example/cb?a=1",
            f"http://{host}:99999/cb?a=1",
            f"http://{host}:x/cb?a=1",
            f"http://{host}:0/cb?a=1",
            f"http://{host}:/cb?a=1",
            f"http://{host}:00080/cb?a=1",
            f"http://{host}:080/cb?a=1",
            f"http://{host}:65536/cb?a=1",
            f"http://{host}:3000/cb?a=1&",
            f"HTTP://{host}:3000/cb?a=1",
            f"http://{host}:3000//cb?a=1",
            f"http://{host}:3000/./cb?a=1",
            f"http://{host}.:3000/cb?a=1",
            *(f"http://{other}:3000/cb?a=1" for other in others),
        ):
            response = browser.get(client.address(redirect_uri=stopped))
            assert (response.status_code, "location" in response.headers) == (400, False), stopped


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]"])
def test_o3_loopback_redirect_uri_must_match_exactly_apart_from_the_port(hub: RunningHub, host: str) -> None:
    client = create_app(hub, None, redirect_uris=(f"http://{host}/cb", f"http://{host}:0/other"))
    with browser_of(hub, create_user(hub, "ada")) as browser:
        assert approve(browser, client.address(redirect_uri=f"http://{host}:3000/cb")).status_code == 303
        assert "code" in redirect_parameters(browser.get(client.address(redirect_uri=f"http://{host}:3000/other")))
        for spelling in ("/cb?", "/cb#", "/cb/", "/cb;", "/CB", "/cb%20", "", "/", ":3000"):
            response = browser.get(client.address(redirect_uri=f"http://{host}{spelling}"))
            assert (response.status_code, "location" in response.headers) == (400, False), spelling
        response = browser.get(client.address(redirect_uri="http://LOCALHOST:1/cb"))
        assert (response.status_code, "location" in response.headers) == (400, False)


O4_PORTS = [
    ("https://good.example/cb", "https://good.example:8443/cb"),
    ("https://good.example/cb", "https://good.example:443/cb"),
    ("https://good.example:8443/cb", "https://good.example/cb"),
    ("https://localhost/cb", "https://localhost:3000/cb"),
    ("com.example.app://host/cb", "com.example.app://host:1/cb"),
    ("com.example.app:/cb", "com.example.app:/cb2"),
]


def test_o4_port_of_other_redirect_uris_must_match(hub: RunningHub) -> None:
    with browser_of(hub, create_user(hub, "ada")) as browser:
        for registered, other in O4_PORTS:
            client = create_app(hub, None, redirect_uris=(registered,))
            assert browser.get(client.address()).status_code == 200
            response = browser.get(client.address(redirect_uri=other))
            assert (response.status_code, "location" in response.headers) == (400, False), other
