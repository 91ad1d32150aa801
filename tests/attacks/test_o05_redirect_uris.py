"""O5: unsafe redirect URIs cannot be registered by the API, on the page or in a metadata document."""

import json
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.attacks.test_o25_to_o32_documents import LENIENT, App, address, described, json_answer
from tests.bed.engines import Engine, settings_for
from tests.bed.people import Page, api, browser_of, create_organization, create_token, create_user
from tests.bed.running_hub import RunningHub, run_hub

from hubgate.server.oauth.cimd.rules import check_document

pytestmark = pytest.mark.one_engine

BAD = [
    "javascript:alert(1)",
    "JavaScript:alert(1)",
    "java\tscript:alert(1)",
    " javascript:alert(1)",
    "data:text/html,<script>alert(1)</script>",
    "file:///etc/passwd",
    "vbscript:x",
    "about:blank",
    "blob:https://app.example/x",
    "view-source:https://app.example/",
    "intent://app.example/#Intent;end",
    "https://app.example/callback#fragment",
    "https://app.example/callback#",
    "com.example.app:/callback#x",
    "http://app.example/callback",
    "https://user@app.example/callback",
    "https://user:password@app.example/callback",
    "https://app.example\\@evil.example/",
    "https:///callback",
    "https:callback",
    "//app.example/callback",
    "/callback",
    "callback",
    "https://app.example/a b",
    "https://app.example/\r\nSet-Cookie:x",
    "https://app.example:99999/",
    "https://[::1/",
    "https://äpp.example/",
    "https://app.example/" + "x" * 2000,
    "localhost:5000/cb",
    "LOCALHOST:5000",
    "myhost.example:8443/cb",
    "myhost.example:8443?x=1",
    "127.0.0.1:5000/cb",
    "[::1]:5000/cb",
    "",
]
GOOD = [
    "https://app.example",
    "https://app.example:8443/callback?tenant=1",
    "http://localhost/cb",
    "http://127.0.0.1:8080/cb",
    "http://[::1]/cb",
    "com.example.app:/callback",
    "com.example.app:callback",
    "com.example.app://callback:8443/cb",
    "com.example.app:443x/cb",
    "myapp://callback",
]


def test_o5_api_rejects_unsafe_redirect_uris(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    create_organization(hub, "acme", ada)
    with api(hub, create_token(hub, ada)) as client:
        for path in ("/api/settings/applications", "/api/organizations/acme/settings/applications"):
            one = f"{path}/{client.post(path, json={'name': 'x', 'redirectUris': GOOD}).json()['clientId']}"
            for bad in BAD:
                for answer in (
                    client.post(path, json={"name": "x", "redirectUris": [bad]}),
                    client.post(path, json={"name": "x", "redirectUris": [*GOOD, bad]}),
                    client.patch(one, json={"redirectUris": [bad]}),
                ):
                    assert answer.status_code == 422, bad
            assert client.get(one).json()["redirectUris"] == GOOD
            assert len(client.get(path).json()) == 1


# One URI on each line of a field: a line break separates two, and an empty line is ignored.
LINES = [bad for bad in BAD if bad and "\r" not in bad]


@pytest.mark.parametrize("root", ["/settings/applications", "/organizations/acme/settings/applications"])
def test_o5_page_rejects_unsafe_redirect_uris(hub: RunningHub, root: str) -> None:
    ada = create_user(hub, "ada")
    create_organization(hub, "acme", ada)
    form = {"name": "x", "scopes": "openid", "redirectMatch": "exact", "tokenLifetime": "28800", "secret": "yes"}
    with browser_of(hub, ada) as browser, api(hub, create_token(hub, ada)) as client:
        hidden = Page(browser.get(f"{root}/new")).hidden(root)
        for bad in LINES:
            for given in (bad, "\n".join([*GOOD, bad])):
                answer = browser.post(root, data={**hidden, **form, "redirectUris": given})
                assert (answer.status_code, 'id="redirectUris-error"' in answer.text) == (422, True), bad
                assert "<script>alert" not in answer.text
        assert client.get(f"/api{root}").json() == []
        assert browser.post(root, data={**hidden, **form, "redirectUris": "\n".join(GOOD)}).status_code == 200
        (app,) = client.get(f"/api{root}").json()
        assert app["redirectUris"] == GOOD
        one = f"{root}/{app['clientId']}"
        hidden = Page(browser.get(one)).hidden(one)
        for bad in LINES:
            answer = browser.post(one, data={**hidden, **form, "redirectUris": bad})
            assert (answer.status_code, 'id="redirectUris-error"' in answer.text) == (422, True), bad
        assert client.get(f"/api{one}").json()["redirectUris"] == GOOD


def test_o5_metadata_document_with_an_unsafe_redirect_uri_is_rejected_over_http(engine: Engine, tmp_path: Path) -> None:
    """The hub fetches the document and rejects all of it."""
    with run_hub(settings_for(engine.fresh_url(), tmp_path, **LENIENT)) as hub, ExitStack() as stack:
        app, ada = App(stack), create_user(hub, "ada")
        with browser_of(hub, ada) as browser:
            for bad in BAD:
                # A host is fetched from ten times a minute.
                hub.clock.advance(seconds=60)
                app.answer = json_answer(described(app.url, redirect_uris=[GOOD[0], bad]))
                for uri in (GOOD[0], bad):
                    answer = browser.get(address(app.url, redirect_uri=uri))
                    assert (answer.status_code, "location" in answer.headers) == (400, False), bad
            hub.clock.advance(seconds=60)
            app.answer = json_answer(described(app.url, redirect_uris=GOOD))
            assert browser.get(address(app.url, redirect_uri=GOOD[0])).status_code == 200
            assert app.fetches == 2 * len(BAD) + 1, "each was looked at"


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("localhost:5000/cb", "http://localhost:5000/cb"),
        ("127.0.0.1:5000", "http://127.0.0.1:5000"),
        ("[::1]:5000/cb", "http://[::1]:5000/cb"),
        ("myhost.example:8443/cb", "https://myhost.example:8443/cb"),
    ],
)
def test_missing_scheme_is_named_in_the_error(sqlite_hub: RunningHub, given: str, meant: str) -> None:
    with api(sqlite_hub, create_token(sqlite_hub, create_user(sqlite_hub, "ada"))) as client:
        refused = client.post("/api/settings/applications", json={"name": "x", "redirectUris": [given]})
        assert refused.json()["error"] == f"{given} has no scheme. Write {meant}."


@pytest.mark.parametrize("bad", [bad for bad in BAD if bad.strip() == bad and bad and "\r" not in bad])
def test_o5_metadata_document_with_an_unsafe_redirect_uri_is_rejected(bad: str) -> None:
    """Only the parser: each of these URIs makes a document invalid."""
    url = "https://app.example/.well-known/oauth-cimd"
    document = {"client_id": url, "client_name": "x", "redirect_uris": [bad], "token_endpoint_auth_method": "none"}
    findings, app = check_document(url, json.dumps(document).encode())
    assert app is None
    assert [finding.rule for finding in findings if not finding.passed] == ["redirect_uris are valid redirect URIs"]
