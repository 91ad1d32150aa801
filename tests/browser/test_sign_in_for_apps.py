"""A user signs in to a website, a program on this computer and an app on this device, in a real browser.

Chromium applies form-action to redirects, so only a browser shows that the redirect back works.
"""

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import parse_qs, parse_qsl, urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, ProxySettings, Request, expect
from tests.bed.apps import Client, create_app, pkce_pair
from tests.bed.cimd_documents import store_document
from tests.bed.people import PASSWORD, create_organization, create_user
from tests.bed.running_hub import RunningHub
from tests.egress.farend import answering, certificate_for, serving, tunnel_to

pytestmark = pytest.mark.browser

WEBSITE = "https://app.example/callback?kept=1"
STATE = '{"to": "/a b?c=d&e"}'


@pytest.fixture
def hub(sqlite_hub: RunningHub) -> RunningHub:
    return sqlite_hub


@pytest.fixture(params=[True, False], ids=["script", "no script"])
def scripted(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@dataclass
class Visitor:
    """One browser. Its requests to the app's website and its console messages are recorded."""

    context: BrowserContext
    arrived: list[Request] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page: Page = self.context.new_page()
        self.page.on("console", lambda message: self.said.append(message.text))
        self.context.on("request", self._record)

    def _record(self, request: Request) -> None:
        if request.url.startswith("https://app.example/") and request.is_navigation_request():
            self.arrived.append(request)

    def sign_in(self) -> None:
        self.page.get_by_label("Username or e-mail").fill("ada")
        self.page.get_by_label("Password").fill(PASSWORD)
        self.page.get_by_role("button", name="Sign in").click()

    def decide(self, name: str) -> None:
        expect(self.page.get_by_role("heading", level=1)).to_contain_text("wants to use your account")
        button = self.page.get_by_role("button", name=name, exact=True)
        expect(button).not_to_have_attribute("aria-disabled", "true")
        button.click()


@pytest.fixture(scope="module")
def website(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxySettings]:
    """The app's website, and the proxy through which a browser finds it."""
    tls, _ = certificate_for("app.example", tmp_path_factory.mktemp("website"))
    page = b"<!doctype html><title>app</title>Back at the app"
    head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {len(page)}\r\n\r\n"
    with serving(answering(head.encode() + page), tls=tls) as site, serving(tunnel_to(site.port)) as proxy:
        yield {"server": f"http://127.0.0.1:{proxy.port}", "bypass": "127.0.0.1,localhost"}


@pytest.fixture
def visitor(browser: Browser, hub: RunningHub, website: ProxySettings, scripted: bool) -> Iterator[Visitor]:
    with browser.new_context(
        base_url=hub.url, java_script_enabled=scripted, proxy=website, ignore_https_errors=True
    ) as context:
        yield Visitor(context)


@contextlib.contextmanager
def listening() -> Iterator[tuple[int, list[bytes]]]:
    """A program on this computer that waits for its response, as in RFC 8252."""
    seen: list[bytes] = []
    with serving(answering(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone", seen)) as server:
        yield server.port, seen


def answer_in(address: str) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(address).query))


def redeem(client: Client, code: str, redirect_uri: str, verifier: str) -> str:
    response = client.redeem(code, redirect_uri=redirect_uri, code_verifier=verifier)
    assert response.status_code == 200, response.text
    scope: str = response.json()["scope"]
    return scope


def test_user_signs_in_to_a_website(hub: RunningHub, visitor: Visitor) -> None:
    """From no session to a token: sign in, review, untick one scope, tick an organization, allow."""
    ada = create_user(hub, "ada")
    acme = create_organization(hub, "acme", ada)
    client, (verifier, challenge) = create_app(hub, None, redirect_uris=(WEBSITE,)), pkce_pair()
    page = visitor.page
    page.goto(client.address(state=STATE, code_challenge=challenge, code_challenge_method="S256"))
    expect(page.get_by_text("You will continue to app.example.")).to_be_visible()
    visitor.sign_in()
    expect(page.get_by_text("Signed in as @ada.")).to_be_visible()
    page.get_by_label("Read your repos").uncheck()
    page.get_by_label("acme").check()
    visitor.decide("Allow")
    page.wait_for_url("https://app.example/**")
    answer = answer_in(page.url)
    assert (answer["kept"], answer["state"], answer["iss"]) == ("1", STATE, hub.url)
    assert redeem(client, answer["code"], WEBSITE, verifier) == "email profile openid"
    assert visitor.arrived[0].all_headers().get("referer", "") in ("", f"{hub.url}/")
    silent = visitor.context.request.get(client.address(orgIds=acme.id, scope="openid", prompt="none"), max_redirects=0)
    assert "code" in answer_in(silent.headers["location"]), "and from now on at once"
    assert visitor.said == []


def test_denial_returns_to_the_app(hub: RunningHub, visitor: Visitor) -> None:
    create_user(hub, "ada")
    client = create_app(hub, None, redirect_uris=(WEBSITE,))
    visitor.page.goto(client.address(state=STATE))
    visitor.sign_in()
    visitor.decide("Deny")
    visitor.page.wait_for_url("https://app.example/**")
    answer = answer_in(visitor.page.url)
    assert (answer["error"], answer["state"], answer["iss"]) == ("access_denied", STATE, hub.url)
    assert "code" not in answer
    assert visitor.said == []


def test_user_signs_in_to_a_program_on_this_computer(hub: RunningHub, visitor: Visitor) -> None:
    create_user(hub, "ada")
    client, (verifier, challenge) = store_document(hub, redirect_uris=["http://127.0.0.1/cb"]), pkce_pair()
    with listening() as (port, seen):
        redirect = f"http://127.0.0.1:{port}/cb"
        visitor.page.goto(
            client.address(
                redirect_uri=redirect,
                scope="openid profile",
                state=STATE,
                code_challenge=challenge,
                code_challenge_method="S256",
            )
        )
        visitor.sign_in()
        expect(
            visitor.page.get_by_text("This app runs on your own computer and cannot prove its identity.")
        ).to_be_visible()
        visitor.decide("Allow")
        expect(visitor.page.locator("body")).to_have_text("done")
        answer = answer_in(seen[0].decode().split(" ")[1])
    assert (answer["state"], answer["iss"]) == (STATE, hub.url)
    assert redeem(client, answer["code"], redirect, verifier) == "openid profile"


def test_user_signs_in_to_an_app_on_this_device(hub: RunningHub, visitor: Visitor) -> None:
    """Nothing handles the scheme here, so the browser stays; the test checks that it tries."""
    create_user(hub, "ada")
    # Where requests are intercepted, Chromium does not report the attempt.
    visitor.context.unroute_all()
    redirect = "com.example.notes:/signed-in"
    client, (verifier, challenge) = store_document(hub, redirect_uris=[redirect]), pkce_pair()
    visitor.page.goto(
        client.address(scope="openid", state=STATE, code_challenge=challenge, code_challenge_method="S256")
    )
    visitor.sign_in()
    expect(visitor.page.get_by_text("an app on this device (com.example.notes)").first).to_be_visible()
    with visitor.page.expect_request(lambda request: request.url.startswith(f"{redirect}?")) as setting_off:
        visitor.decide("Allow")
    answer = answer_in(setting_off.value.url)
    assert (answer["state"], answer["iss"]) == (STATE, hub.url)
    assert redeem(client, answer["code"], redirect, verifier) == "openid"
    assert not [line for line in visitor.said if "Content Security Policy" in line]


def test_form_post_reaches_the_app(hub: RunningHub, visitor: Visitor, scripted: bool) -> None:
    create_user(hub, "ada")
    client = create_app(hub, None, redirect_uris=(WEBSITE,))
    visitor.page.goto(client.address(state=STATE, response_mode="form_post"))
    visitor.sign_in()
    visitor.decide("Allow")
    if not scripted:
        visitor.page.get_by_role("button", name="Continue to app.example").click()
    visitor.page.wait_for_url("https://app.example/**")
    sent = visitor.arrived[0]
    assert (sent.method, sent.url) == ("POST", WEBSITE)
    fields = dict(parse_qsl(sent.post_data or ""))
    assert (fields["state"], fields["iss"]) == (STATE, hub.url)
    assert client.redeem(fields["code"]).status_code == 200
    assert visitor.said == []


def test_request_posted_by_the_apps_page_keeps_the_session(hub: RunningHub, visitor: Visitor) -> None:
    """It is cross-site, so without a cookie: a signed-in user is still recognised."""
    create_user(hub, "ada")
    client = create_app(hub, None, redirect_uris=(WEBSITE,))
    page = visitor.page
    page.goto("/login")
    visitor.sign_in()
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    fields = "".join(
        f'<input name="{name}" value="{value}">'
        for name, value in parse_qsl(client.address(state="s").partition("?")[2])
    )
    form = (
        f'<form method="post" action="{hub.url}/oauth/authorize">{fields}<button>Sign in with the hub</button></form>'
    )
    visitor.context.route(
        "https://shop.example/",
        lambda route: route.fulfill(status=200, content_type="text/html", body=f"<!doctype html>{form}"),
    )
    page.goto("https://shop.example/")
    page.get_by_role("button").click()
    expect(page.get_by_text("Signed in as @ada.")).to_be_visible()
    visitor.decide("Allow")
    page.wait_for_url("https://app.example/**")
    assert "code" in answer_in(page.url)


def test_user_can_switch_to_another_account(hub: RunningHub, visitor: Visitor) -> None:
    for name in ("bob", "ada"):
        create_user(hub, name)
    client = create_app(hub, None, redirect_uris=(WEBSITE,))
    page = visitor.page
    page.goto("/login")
    page.get_by_label("Username or e-mail").fill("bob")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    page.goto(client.address())
    expect(page.get_by_text("Signed in as @bob.")).to_be_visible()
    page.get_by_role("link", name="Use another account").click()
    expect(page.get_by_role("link", name="Continue as @bob")).to_be_visible()
    visitor.sign_in()
    expect(page.get_by_text("Signed in as @ada.")).to_be_visible()
    visitor.decide("Allow")
    page.wait_for_url("https://app.example/**")
    assert "code" in answer_in(page.url)


def test_enter_key_decides_nothing(hub: RunningHub, visitor: Visitor) -> None:
    create_user(hub, "ada")
    client = create_app(hub, None, redirect_uris=(WEBSITE,))
    page = visitor.page
    page.goto(client.address())
    visitor.sign_in()
    posted: list[str] = []
    page.on("request", lambda request: posted.append(request.method))
    page.get_by_label("Read your repos").focus()
    page.keyboard.press("Enter")
    page.get_by_label("Read your repos").uncheck()
    expect(page.get_by_role("button", name="Allow")).to_be_visible()
    assert "POST" not in posted


def test_second_half_of_a_double_click_allows_nothing(
    browser: Browser, hub: RunningHub, website: ProxySettings
) -> None:
    """The attacker's page asks for a double click and moves the consent page under the pointer after the first half."""
    create_user(hub, "ada")
    client = create_app(hub, None, redirect_uris=(WEBSITE,))
    with browser.new_context(base_url=hub.url, proxy=website, ignore_https_errors=True) as context:
        visitor = Visitor(context)
        page = visitor.page
        page.clock.install(time=0)
        page.clock.pause_at(1000)
        page.goto(client.address())
        visitor.sign_in()
        allow = page.get_by_role("button", name="Allow", exact=True)
        expect(allow).to_have_attribute("aria-disabled", "true")
        allow.click(force=True)
        page.clock.run_for(590)
        allow.click(force=True)
        page.evaluate("dispatchEvent(new Event('focus'))")
        page.clock.run_for(590)
        expect(allow).to_have_attribute("aria-disabled", "true")
        allow.click(force=True)
        page.clock.run_for(20)
        expect(allow).not_to_have_attribute("aria-disabled", "true")
        assert visitor.arrived == []
        expect(page.get_by_text("Signed in as @ada.")).to_be_visible()
        allow.click()
        page.wait_for_url("https://app.example/**")
        assert re.search(r"code=", page.url)


def test_connected_apps_can_be_changed_and_revoked(hub: RunningHub, visitor: Visitor) -> None:
    ada = create_user(hub, "ada")
    create_organization(hub, "acme", ada)
    client, (verifier, challenge) = store_document(hub, redirect_uris=[WEBSITE]), pkce_pair()
    page = visitor.page
    page.goto(client.address(scope="openid jobs", code_challenge=challenge, code_challenge_method="S256"))
    visitor.sign_in()
    visitor.decide("Allow")
    page.wait_for_url("https://app.example/**")
    assert redeem(client, answer_in(page.url)["code"], WEBSITE, verifier) == "openid jobs"
    page.goto("/settings/connected")
    page.get_by_role("link", name="Edit Field Notes").click()
    page.get_by_label("Run jobs on your behalf").uncheck()
    page.get_by_label("acme").check()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status").first).to_contain_text("Takes effect on the app's next request.")
    expect(page.get_by_label("acme")).to_be_checked()
    page.get_by_role("link", name="Revoke…").click()
    page.get_by_role("button", name="Revoke Field Notes").click()
    expect(page.get_by_role("status").first).to_contain_text("Revoked Field Notes.")
    expect(page.get_by_text("Apps you approve appear here.")).to_be_visible()
    assert parse_qs(urlsplit(page.url).query) == {}
