"""`/docs/sign-in` with the developer's own client ids and buttons, and `/docs/cimd`, which checks a metadata
document.
"""

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from contextlib import ExitStack
from html import unescape
from pathlib import Path
from urllib.parse import urlencode

import pytest
from tests.attacks.test_o25_to_o32_documents import App, described, json_answer
from tests.bed import lean_http
from tests.bed.apps import create_app
from tests.bed.engines import Engine, settings_for
from tests.bed.people import browser_of, code_on_page, create_organization, create_user, submit
from tests.bed.running_hub import RunningHub, run_hub

pytestmark = pytest.mark.one_engine

SIGN_IN, CHECK = "/docs/sign-in", "/docs/cimd"


def test_discovery_names_the_page(hub: RunningHub) -> None:
    said = lean_http.get(f"{hub.url}/.well-known/openid-configuration").json()
    assert said["service_documentation"] == hub.url + SIGN_IN
    assert lean_http.get(said["service_documentation"]).status_code == 200


def test_contents_have_a_heading_on_a_phone(hub: RunningHub) -> None:
    page = lean_http.get(hub.url + SIGN_IN).text
    assert "<summary>Documentation</summary>" in page
    assert 'aria-label="On this page"' in page


def test_code_samples_contain_the_developers_own_apps(hub: RunningHub) -> None:
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    acme = create_organization(hub, "acme", ada, bob="write")
    mine = create_app(hub, ada, name="Mine")
    hub.clock.advance(1)
    public = create_app(hub, ada, name="Public", confidential=False)
    ours, foreign = create_app(hub, organization=acme, name="Ours"), create_app(hub, bob, name="Foreign")
    with browser_of(hub) as nobody:
        for address in (SIGN_IN, f"{SIGN_IN}?app={mine.id}"):
            page = nobody.get(address).text
            assert "your-client-id" in page
            assert mine.id not in page.partition("<main")[2].partition('<form class="theme-form"')[0]
    with browser_of(hub, ada) as browser:
        first = browser.get(SIGN_IN).text
        assert f'client_id="{mine.id}"' in code_on_page(first, "snippet-python")
        assert [name for name in ("Mine", "Public", "Ours", "Foreign") if f">{name}</option>" in first] == [
            "Mine",
            "Public",
            "Ours",
        ]
        assert f'client_id="{ours.id}"' in code_on_page(browser.get(f"{SIGN_IN}?app={ours.id}").text, "snippet-python")
        without_secret = browser.get(f"{SIGN_IN}?app={public.id}").text
        assert "client.None()" in code_on_page(without_secret, "snippet-openid-client")
        assert "CLIENT_SECRET" not in without_secret
        stranger = browser.get(f"{SIGN_IN}?app={foreign.id}").text
        assert foreign.id not in code_on_page(stranger, "snippet-python")
        assert "The requested app is not yours" in stranger
    with browser_of(hub, bob) as browser:
        assert ">Ours</option>" not in browser.get(SIGN_IN).text, "a member who is no admin"


def test_python_sample_is_valid_python(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    odd = create_app(hub, ada, redirect_uris=("https://app.example/a'b$(id);&x=1",), scopes=())
    with browser_of(hub, ada) as browser:
        page = browser.get(f"{SIGN_IN}?app={odd.id}").text
    names = re.findall(r'<code id="snippet-([\w-]+)">', page)
    code = {name: code_on_page(page, f"snippet-{name}") for name in names}
    assert set(code) == {"curl", "python", "openid-client"}
    compile(code["python"], "python", "exec")
    # The shell reads it as one word with any content.
    assert """--data-urlencode 'redirect_uri=https://app.example/a'"'"'b$(id);&x=1'""" in code["curl"]
    assert not [text for text in code.values() if "@{" in text]


def test_buttons_are_offered(hub: RunningHub) -> None:
    page = lean_http.get(hub.url + SIGN_IN).text
    shown = re.findall(r'<img src="(/static/buttons/[\w-]+\.svg)" width="(\d+)" height="(\d+)"', page)
    assert len(shown) == 8
    heights = set()
    for address, width, height in shown:
        answer = lean_http.get(hub.url + address)
        assert answer.headers["content-type"] == "image/svg+xml"
        assert answer.headers["access-control-allow-origin"] == "*"
        assert "sandbox" in answer.headers["content-security-policy"]
        drawing = ET.fromstring(answer.text)
        assert (drawing.get("width"), drawing.get("height")) == (width, height)
        assert "script" not in answer.text
        assert len(answer.content) < 1500
        heights.add(height)
    assert len(heights) == 4
    assert f"&lt;img src=&#34;{hub.url}/static/buttons/sign-in-light-md.svg&#34;" in page
    assert lean_http.get(f"{hub.url}/static/buttons/hub.css").status_code == 404


@pytest.fixture
def lenient(engine: Engine, tmp_path: Path) -> Iterator[RunningHub]:
    """Development mode: documents may be fetched by http from loopback addresses."""
    given = {"egress_allow": "127.0.0.0/8", "cimd_allow_http_loopback": "true"}
    with run_hub(settings_for(engine.fresh_url(), tmp_path, **given)) as hub:
        yield hub


def test_document_is_checked_rule_by_rule(lenient: RunningHub) -> None:
    with ExitStack() as stack:
        browser = stack.enter_context(browser_of(lenient, create_user(lenient, "ada")))
        site = App(stack)
        good = submit(browser, CHECK, url=site.url)
        assert good.status_code == 200
        assert "All checks passed. People can sign in to this app." in good.text
        assert "✕" not in good.text
        for rule in ("The address has a path", "The document is sent as JSON", "client_id is this address"):
            assert rule in good.text
        assert "The document contains no secret" in good.text
        bad = {"client_id": "https://x.example/<b>\u202e", "client_secret": "hush", "redirect_uris": ["javascript:x"]}
        site.answer = json_answer(described(site.url, **bad))
        page = submit(browser, CHECK, url=site.url).text
        assert "3 checks failed." in page
        assert f"Set client_id to {site.url}." in page
        assert "Remove it: everyone can read this document." in page
        assert "A redirect URI cannot use the scheme javascript." in page
        assert "<bdi>https://x.example/&lt;b&gt;</bdi>" in page, "neutralised"
        assert "hush" not in page
        assert page.index("3 checks failed.") < page.index("Failed") < page.index("Passed"), "failed checks are first"
        assert page.rindex("Failed") < page.index("Passed")
        assert site.fetches == 2, "nothing is kept"
        stopped = browser.get("/oauth/authorize", params={"client_id": site.url})
        assert stopped.status_code == 400
        checker = f"{CHECK}?{urlencode({'url': site.url})}"
        assert f'<a href="{checker}">Check its document</a>' in stopped.text
        fetched = site.fetches
        assert f'value="{site.url}"' in browser.get(checker).text
        assert site.fetches == fetched, "filled in, not fetched"


@pytest.mark.parametrize(
    ("status", "cure"),
    [
        ("302 Found", "Respond with status 200, not 302: redirects are not followed."),
        ("404 No", "Respond with status 200, not 404."),
    ],
)
def test_only_the_status_is_reported_if_it_is_not_200(lenient: RunningHub, status: str, cure: str) -> None:
    with ExitStack() as stack:
        site = App(stack)
        site.answer = json_answer(b"{}", status, "Location: /other\r\n")
        browser = stack.enter_context(browser_of(lenient, create_user(lenient, "ada")))
        page = submit(browser, CHECK, url=site.url).text
        assert "1 check failed." in page
        assert f"<td>{cure}</td>" in page
        assert "The document is sent as JSON" not in page
        assert "The document is small enough" not in page


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (b"[]", ["a list"]),
        (b"null", ["null"]),
        (b"7", ["a number"]),
        (b"<html>", ["not JSON"]),
        (b"{}", ["missing"]),
        (b'{"client_id": null, "client_name": "", "redirect_uris": {"a": true}}', ["null", "an empty string", "true"]),
    ],
    ids=range(6),
)
def test_findings_are_described_in_json_terms(lenient: RunningHub, body: bytes, found: list[str]) -> None:
    with ExitStack() as stack:
        site = App(stack)
        site.answer = json_answer(body)
        browser = stack.enter_context(browser_of(lenient, create_user(lenient, "ada")))
        page = unescape(submit(browser, CHECK, url=site.url).text)
        told = re.findall(r'<td class="mono"><bdi>(.*?)</bdi></td>', page)
        for word in found:
            assert any(word in one for one in told), told
        assert not re.search(r"None|\bdict\b|\bNoneType\b|True|\bstr\b", " ".join(told))


def test_every_invalid_redirect_uri_is_named(lenient: RunningHub) -> None:
    uris = ["https://app.example/callback", "javascript:x", "http://app.example/cb", 7, "https://app.example/#x"]
    with ExitStack() as stack:
        site = App(stack)
        site.answer = json_answer(described(site.url, redirect_uris=uris))
        browser = stack.enter_context(browser_of(lenient, create_user(lenient, "ada")))
        page = submit(browser, CHECK, url=site.url).text
        assert "4 checks failed." in page
        for uri in uris[1:]:
            assert f'<td class="mono"><bdi>{uri}</bdi></td>' in page
        assert f"<bdi>{uris[0]}</bdi>" not in page


def test_development_mode_is_explained_where_needed(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    settings = "HUBGATE_CIMD_ALLOW_HTTP_LOOPBACK=true and HUBGATE_EGRESS_ALLOW={}."
    with browser_of(hub, ada) as browser:
        both = "HUBGATE_CIMD_ALLOW_HTTP_LOOPBACK=true \\\nHUBGATE_EGRESS_ALLOW=127.0.0.0/8 hubgate serve"
        assert code_on_page(browser.get(CHECK).text, "development-settings") == both
        for address, networks in (
            ("http://127.0.0.1:3000/app", "127.0.0.0/8"),
            ("https://127.0.0.1:3000/app", "127.0.0.0/8"),
            ("http://localhost:3000/app", "127.0.0.0/8,::1/128"),
            ("http://[::1]:3000/app", "::1/128"),
        ):
            assert settings.format(networks) in submit(browser, CHECK, url=address).text, address
        for address in ("http://app.example/app", "https://10.0.0.1/app"):
            assert "In development" not in submit(browser, CHECK, url=address).text
        # Such a client id is rejected here; the checker says why.
        stopped = browser.get("/oauth/authorize", params={"client_id": "http://127.0.0.1:3000/app"})
        checker = f"{CHECK}?{urlencode({'url': 'http://127.0.0.1:3000/app'})}"
        assert f'<a href="{checker}">Check its document</a>' in stopped.text


def test_url_that_cannot_be_checked_is_explained(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    with browser_of(hub, ada) as browser:
        assert submit(browser, CHECK, url=" ").status_code == 422
        for address in (
            "app.example",
            "http://app.example/x",
            "https://app.example",
            "https://a b/x",
            "https://[::1/x",
        ):
            answer = submit(browser, CHECK, url=address)
            assert answer.status_code == 200
            assert "✕</span> Failed" in answer.text, address
        for address in ("https://127.0.0.1/x", "https://10.0.0.1/x", "https://169.254.169.254/x"):
            assert "No answer from the address." in submit(browser, CHECK, url=address).text
    with browser_of(hub) as nobody:
        assert "Sign in to check yours" in nobody.get(CHECK).text
        hidden = re.findall(r'name="csrf" value="([^"]+)"', nobody.get(CHECK).text)[0]
        refused = nobody.post(CHECK, data={"csrf": unescape(hidden), "url": "https://127.0.0.1/x"})
        assert refused.status_code == 401


def test_checks_are_throttled(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    with browser_of(hub, ada) as browser:
        statuses = [submit(browser, CHECK, url=f"https://127.0.0.1/{number}").status_code for number in range(12)]
    assert statuses == [*[200] * 10, 429, 429]
