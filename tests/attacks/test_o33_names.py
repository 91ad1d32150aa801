"""O33: an app's name cannot reverse, hide in or break out of the text around it."""

import json
import re

import pytest
from tests.bed.apps import Client, approve, create_app
from tests.bed.cimd_documents import store_document, store_document_text
from tests.bed.people import browser_of, create_organization, create_user
from tests.bed.running_hub import RunningHub

pytestmark = pytest.mark.one_engine

PKCE = {"code_challenge": "c" * 43, "code_challenge_method": "S256"}
HIDDEN = (
    "\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\u2066\u2067\u2068\u2069"
    "\ufeff\u00ad\u2028\u2029\ue000"
)
DOCUMENT = {"redirect_uris": ["https://notes.example/callback"], "token_endpoint_auth_method": "none"}
NAMES = [
    f"Ba{HIDDEN}nk",
    "\u202egnp.exe",
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "{{ 7*7 }}{% raw %}",
    "</bdi></h1><h1>Hub",
    "x" * 200,
    "بنك السلام" * 6,
    "Z͑ͫ̓ͪ̂ͫ̽a̓ͪ̂ͫ̽lgo",
]


def pages(client: Client, number: int = 0) -> list[str]:
    """All pages that show the name to a user: consent, redirect errors, connected apps."""
    hub, ada = client.hub, create_user(client.hub, f"ada{number}")
    acme = create_organization(hub, f"acme{number}", ada)
    asked = {"scope": "openid profile", **PKCE}
    with browser_of(hub, ada) as browser:
        consent = browser.get(client.address(orgIds=acme.id, **asked))
        astray = browser.get(client.address(redirect_uri="https://evil.example/", **asked))
        approve(browser, client.address(**asked))
        connected = browser.get("/settings/connected")
        address = re.findall(r'href="(/settings/connected/[^"]+/revoke)"', connected.text)[0]
        edit, revoke = browser.get(address.removesuffix("/revoke")), browser.get(address)
        shown = [consent, astray, connected, edit, revoke]
        assert [page.status_code for page in shown] == [200, 400, 200, 200, 200]
    return [page.text for page in shown]


def test_o33_name_is_always_escaped(hub: RunningHub) -> None:
    found = [page for number, name in enumerate(NAMES) for page in pages(store_document(hub, client_name=name), number)]
    assert len(found) == 5 * len(NAMES)
    for page in found:
        assert not set(HIDDEN) & set(page)
        assert page.count("<script") == 1
        assert "<img src=x" not in page
        assert "49" not in re.findall(r"<h1>(.*?)</h1>", page, re.DOTALL)[0]
        assert page.count("<h1") == 1
        assert "x" * 61 not in page


def test_o33_name_is_isolated_from_the_text_direction_around_it(hub: RunningHub) -> None:
    """`<bdi>` keeps right-to-left letters from reordering the sentence around them."""
    name = "بنك السلام"
    client = store_document(hub, client_name=name)
    consent, _, *others = pages(client)
    assert consent.count(name) == consent.count(f"<bdi>{name}</bdi>") + 1, "but for the title"
    for page in others:
        assert f"<bdi>{name}</bdi>" in page


def test_o33_registered_name_is_escaped_too(hub: RunningHub) -> None:
    client = create_app(hub, name='<b>"Bank"</b>')
    with browser_of(hub, create_user(hub, "ada")) as browser:
        page = browser.get(client.address()).text
    assert "<b>" not in page
    assert "&lt;b&gt;" in page


def test_o33_name_with_a_lone_surrogate_is_rejected(hub: RunningHub) -> None:
    """JSON can encode half a surrogate pair, which can neither be shown nor stored."""
    client = store_document(hub, client_name="ab")
    store_document_text(hub, client.id, json.dumps({**DOCUMENT, "client_id": client.id, "client_name": "a\ud800b"}))
    with browser_of(hub, create_user(hub, "ada")) as browser:
        assert browser.get(client.address(scope="openid", **PKCE)).status_code == 400
