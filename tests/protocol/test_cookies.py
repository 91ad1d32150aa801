"""On https, session cookies have names that no other host can set; on http, plain ones."""

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.bed.engines import Engine, settings_for
from tests.bed.lean_http import LeanClient
from tests.bed.people import PASSWORD, Page, browser_of, create_user
from tests.bed.running_hub import RunningHub, run_hub

pytestmark = pytest.mark.one_engine

ON_HTTPS = {"base_url": "https://hub.example"}


class Browser:
    """Sends and stores cookies itself: a hub on https is reached over http here, as behind its proxy."""

    def __init__(self, hub: RunningHub) -> None:
        self._client = LeanClient(base_url=f"http://{hub.settings.host}:{hub.settings.port}", timeout=60)
        self.cookies: dict[str, str] = {}
        # As they were set, by name.
        self.set: dict[str, str] = {}

    def get(self, path: str, cookie: str | bytes | None = None) -> httpx.Response:
        """`cookie` is sent instead of the stored ones."""
        return self._stored(self._client.get(path, headers=self._headers(cookie)))

    def submit(self, path: str, page: str | None = None, **fields: str) -> httpx.Response:
        hidden = Page(self.get(page or path)).hidden(path if page else None)
        return self._stored(self._client.post(path, data={**hidden, **fields}, headers=self._headers(None)))

    def _headers(self, cookie: str | bytes | None) -> httpx.Headers:
        given = "; ".join(f"{name}={value}" for name, value in self.cookies.items()) if cookie is None else cookie
        return httpx.Headers([(b"cookie", given if isinstance(given, bytes) else given.encode())])

    def _stored(self, answer: httpx.Response) -> httpx.Response:
        for line in answer.headers.get_list("set-cookie"):
            name, _, value = line.partition(";")[0].partition("=")
            self.set[name] = line
            if "Max-Age=0" in line:
                self.cookies.pop(name, None)
            else:
                self.cookies[name] = value
        return answer

    def close(self) -> None:
        self._client.close()


@pytest.fixture
def on_https(engine: Engine, tmp_path: Path) -> Iterator[RunningHub]:
    with run_hub(settings_for(engine.fresh_url(), tmp_path, **ON_HTTPS)) as hub:
        yield hub


@pytest.fixture
def browser(on_https: RunningHub) -> Iterator[Browser]:
    """Ada's browser, signed in."""
    create_user(on_https, "ada")
    browser = Browser(on_https)
    assert browser.submit("/login", username="ada", password=PASSWORD).status_code == 303
    yield browser
    browser.close()


def is_bound_to_its_host(line: str) -> bool:
    attributes = {part.strip().lower() for part in line.split(";")[1:]}
    return {"secure", "httponly", "path=/", "samesite=lax"} <= attributes and "domain" not in line.lower()


def test_names_are_prefixed_on_https(browser: Browser) -> None:
    changed = browser.submit("/settings/profile", fullname="Ada L.")
    assert changed.status_code == 303
    assert set(browser.set) == {"__Host-csrf", "__Host-token", "__Host-flash"}
    assert all(map(is_bound_to_its_host, browser.set.values())), browser.set
    assert "__Host-flash" in browser.cookies
    assert browser.get("/settings/profile").status_code == 200
    assert "__Host-flash" not in browser.cookies, "a message is shown once"
    assert is_bound_to_its_host(browser.set["__Host-flash"])


def test_only_the_prefixed_session_cookie_is_accepted_on_https(browser: Browser) -> None:
    session = browser.cookies["__Host-token"]
    assert browser.get("/settings/profile", f"__Host-token={session}").status_code == 200
    for refused in (
        f"token={session}",
        f"__host-token={session}",
        f"__Secure-token={session}",
        f'__Host-token="{session}"',
        # Not prefixed for a browser, but for a parser that strips all kinds of whitespace.
        b"\xa0__Host-token=" + session.encode(),
        b"\x85__Host-token=" + session.encode(),
        # One of them was planted.
        f"__Host-token={session}; __Host-token=x",
        f"__Host-token=x; __Host-token={session}",
    ):
        answer = browser.get("/settings/profile", refused)
        assert (answer.status_code, answer.headers["location"][:6]) == (303, "/login"), refused
    assert browser.get("/settings/profile", f"token=planted; __Host-token={session}").status_code == 200
    assert browser.get("/settings/profile", f"a=b;\t__Host-token={session} ;c").status_code == 200


def test_session_planted_by_a_sibling_host_is_ignored_on_https(on_https: RunningHub, browser: Browser) -> None:
    """Login CSRF: a user who works in the attacker's account hands over what they enter."""
    create_user(on_https, "eve")
    eve, ada = Browser(on_https), Browser(on_https)
    try:
        assert eve.submit("/login", username="eve", password=PASSWORD).status_code == 303
        ada.cookies["token"] = eve.cookies["__Host-token"]
        assert ada.get("/settings/profile").status_code == 303
        browser.cookies["token"] = eve.cookies["__Host-token"]
        assert re.search(r'value="ada"|>ada<', browser.get("/settings/profile").text)
        assert browser.submit("/settings/profile", fullname="Ada L.").status_code == 303
    finally:
        eve.close()
        ada.close()


def test_signing_out_deletes_the_prefixed_cookie(browser: Browser) -> None:
    assert browser.submit("/logout", "/").status_code == 303
    assert "__Host-token" not in browser.cookies
    assert is_bound_to_its_host(browser.set["__Host-token"])


def test_names_are_plain_on_http(hub: RunningHub) -> None:
    user = create_user(hub, "ada")
    browser = Browser(hub)
    try:
        assert browser.submit("/login", username="ada", password=PASSWORD).status_code == 303
        assert set(browser.set) == {"csrf", "token"}
        assert not any("secure" in line.lower() for line in browser.set.values())
    finally:
        browser.close()
    with browser_of(hub, user) as client:
        session = client.cookies["token"]
    with hub.client() as client:
        assert client.get("/settings/profile", headers={"cookie": f"__Host-token={session}"}).status_code == 303
        assert client.get("/settings/profile", headers={"cookie": f"token={session}"}).status_code == 200
