"""O36, O37: an app cannot find out about organizations, and a tampered form gives only what was asked of its own."""

import re

import httpx
from tests.bed.apps import answer_of, approve, make_app
from tests.bed.people import api, browser_of, make_organization, make_user
from tests.bed.running import RunningHub


def read(page: httpx.Response, *ids: str) -> str:
    """Without what differs by design: the form's secret and the address it repeats."""
    text = re.sub(r'name="csrf" value="[^"]*"', "", page.text)
    for each in ids:
        text = text.replace(each, "ID")
    return text


def test_o36_unknown_and_foreign_organizations_look_alike(hub: RunningHub) -> None:
    ada, olga = make_user(hub, "ada"), make_user(hub, "olga")
    own, foreign, unknown = make_organization(hub, "acme", ada).id, make_organization(hub, "beta", olga).id, "f" * 24
    client = make_app(hub)
    with browser_of(hub, ada) as browser:
        pages = [browser.get(client.address(orgIds=each)) for each in (foreign, unknown)]
        assert [page.status_code for page in pages] == [200, 200]
        assert read(pages[0], foreign) == read(pages[1], unknown)
        assert " checked" not in pages[0].text.partition("Give access to organizations?")[2]
        for each in (foreign, unknown, "junk", "../../x", "%00"):
            sent = approve(browser, client.address(orgIds=each, prompt="consent"), orgs=[each])
            token = client.redeem(answer_of(sent)["code"]).json()["access_token"]
            with api(hub, token) as app:
                listed = app.get("/oauth/userinfo").json()["orgs"]
            assert [(org["sub"], "roleInOrg" in org) for org in listed] == [(own, False)], "nothing was granted"
        answers = [browser.get(client.address(orgIds=each)) for each in (foreign, unknown)]
        assert ["code" in answer_of(answer) for answer in answers] == [True, True], "and nothing is missing"
        silent = [browser.get(client.address(orgIds=each, prompt="none")) for each in (foreign, unknown)]
        assert ["code" in answer_of(answer) for answer in silent] == [True, True]


def test_o37_only_what_was_asked_and_only_ones_own(hub: RunningHub) -> None:
    ada, olga = make_user(hub, "ada"), make_user(hub, "olga")
    own, foreign = make_organization(hub, "acme", ada), make_organization(hub, "beta", olga)
    client = make_app(hub, scopes=("openid", "profile", "read-repos", "manage-repos"))
    with browser_of(hub, ada) as browser:
        sent = approve(
            browser,
            client.address(scope="openid read-repos"),
            scopes=["openid", "read-repos", "manage-repos", "webhooks", "nonsense", ""],
            orgs=[own.id, foreign.id, "0" * 24, "x"],
        )
        body = client.redeem(answer_of(sent)["code"]).json()
        assert body["scope"] == "read-repos openid"
        with api(hub, body["access_token"]) as app:
            listed = app.get("/oauth/userinfo").json()["orgs"]
        assert [(org["sub"], "roleInOrg" in org) for org in listed] == [(own.id, True)]
        assert browser.get(client.address(scope="openid manage-repos")).status_code == 200, "not in the grant either"


def test_o37_the_request_cannot_be_widened_in_the_form(hub: RunningHub) -> None:
    client = make_app(hub, scopes=("openid", "read-repos", "manage-repos"))
    with browser_of(hub, make_user(hub, "ada")) as browser:
        sent = approve(browser, client.address(scope="openid"), scope="openid manage-repos", scopes=["manage-repos"])
        assert answer_of(sent)["error"] == "invalid_request", "sent twice"
        sent = approve(browser, client.address(scope="openid"), redirect_uri="https://evil.example/")
        assert (sent.status_code, "location" in sent.headers) == (400, False)


def test_o37_what_cannot_be_unticked_stays(hub: RunningHub) -> None:
    client = make_app(hub, scopes=("openid", "profile", "jobs"), required_scopes=("jobs",))
    with browser_of(hub, make_user(hub, "ada")) as browser:
        sent = approve(browser, client.address(), scopes=[])
    assert client.redeem(answer_of(sent)["code"]).json()["scope"] == "jobs profile openid"
