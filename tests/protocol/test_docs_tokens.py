"""The documentation of tokens is correct: the curl commands, the claims, the schemas of the API."""

import base64
import json
import re
import shlex
from typing import Any

import httpx
import pytest
from tests.bed import lean_http
from tests.bed.apps import SCOPES, Client, code_for, create_app, pkce_pair, tokens_for
from tests.bed.people import api, browser_of, code_on_page, create_organization, create_token, create_user
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts.model import User
from hubgate.server.resources import Hub
from hubgate.server.scopes import SCOPE_NAMES

pytestmark = pytest.mark.one_engine

SIGN_IN = "/docs/sign-in"


def steps_of(client: Client, owner: User) -> dict[str, str]:
    """The curl commands, by the number of the step."""
    with browser_of(client.hub, owner) as browser:
        page = browser.get(f"{SIGN_IN}?app={client.id}").text
    text = code_on_page(page, "snippet-curl")
    parts = re.split(r"(?m)^# (\d)  .*\n", text)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def curl(command: str, **variables: str) -> httpx.Response:
    """Send what curl would send: the few options that the page uses."""
    words = shlex.split(command.replace("\\\n", " "))
    words = [re.sub(r"\$(\w+)", lambda found: variables[found.group(1)], word) for word in words]
    assert words.pop(0) == "curl"
    url = words.pop(0)
    form: list[str] = []
    headers, auth = {}, None
    for option, value in zip(words[::2], words[1::2], strict=True):
        match option:
            case "-u":
                auth = httpx.BasicAuth(*value.split(":"))
            case "-H":
                headers = dict([value.split(": ")])
            case "-d" | "--data-urlencode":
                form.append(value)
            case _:
                raise AssertionError(option)
    data = dict(pair.split("=", 1) for pair in form)
    return lean_http.request("POST" if data else "GET", url, data=data or None, headers=headers, auth=auth)


@pytest.mark.parametrize("confidential", [True, False], ids=["secret", "public"])
def test_curl_commands_work_from_the_code_to_the_end(hub: RunningHub, *, confidential: bool) -> None:
    ada, olga = create_user(hub, "ada"), create_user(hub, "olga")
    client = create_app(hub, olga, confidential=confidential, refresh_tokens=True)
    steps, secret = steps_of(client, olga), {"CLIENT_SECRET": client.secret or ""}
    assert set(steps) == set("123456" if confidential else "12345")
    verifier, challenge = pkce_pair()
    code = code_for(client, ada, code_challenge=challenge, code_challenge_method="S256")
    tokens = curl(steps["2"], CODE=code, VERIFIER=verifier, **secret).json()
    assert curl(steps["3"], ACCESS_TOKEN=tokens["access_token"]).json()["sub"] == ada.id
    refreshed = curl(steps["4"], REFRESH_TOKEN=tokens["refresh_token"], **secret).json()
    again = curl(steps["4"], REFRESH_TOKEN=tokens["refresh_token"], **secret).json()
    assert again["refresh_token"] == refreshed["refresh_token"] != tokens["refresh_token"], "the same successor"
    latest = refreshed["access_token"]
    if confidential:
        assert curl(steps["5"], ACCESS_TOKEN=latest, **secret).json()["active"] is True
    assert curl(steps["6" if confidential else "5"], ACCESS_TOKEN=latest, **secret).status_code == 200
    assert curl(steps["3"], ACCESS_TOKEN=latest).status_code == 401


def claims_table(page: str) -> dict[str, tuple[set[str], set[str]]]:
    """The page's table of claims: what a scope adds to the ID token, and to userinfo."""
    region = page[page.index('aria-label="Claims by scope"') :]
    rows = re.findall(
        r'<tr><th scope="row">(.*?)</th><td>(.*?)</td><td>(.*?)</td></tr>', region[: region.index("</table>")]
    )
    plain = re.compile(r"<code>(\w+)</code>")
    return {re.sub(r"<.*?>", "", scope): (set(plain.findall(one)), set(plain.findall(two))) for scope, one, two in rows}


def claims_in(token: str) -> set[str]:
    body = token.split(".")[1]
    return set(json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))))


def test_claims_match_the_table(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    create_organization(hub, "acme", ada, plan="team")

    async def fill(opened: Hub) -> None:
        await opened.db.write(lambda tx: tx.exec("UPDATE users SET website = 'https://ada.example'"))

    hub.call(fill)
    client = create_app(hub, create_user(hub, "olga"), scopes=tuple(SCOPE_NAMES))
    table = claims_table(lean_http.get(hub.url + SIGN_IN).text)
    always = table.pop("any")
    for scope in sorted(SCOPE_NAMES - {"openid"}):
        tokens = tokens_for(client, ada, scope=f"openid {scope}", nonce="n")
        in_id_token, in_userinfo = table.get(scope, (set(), set()))
        assert claims_in(tokens["id_token"]) == always[0] | in_id_token, scope
        with api(hub, tokens["access_token"]) as app:
            assert set(app.get("/oauth/userinfo").json()) == always[1] | in_userinfo, scope
    assert set(table) <= SCOPE_NAMES
    # An app has to ask for `groups`.
    known = {"groups"}.union(*always, *(names for pair in table.values() for names in pair))
    discovered = lean_http.get(f"{hub.url}/.well-known/openid-configuration").json()["claims_supported"]
    assert (set(discovered), len(discovered)) == (known, len(known))


def test_every_organization_is_listed_with_the_role_only_where_granted(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    acme, other = create_organization(hub, "acme", ada, plan="team"), create_organization(hub, "other", ada)
    client = create_app(hub, create_user(hub, "olga"))
    tokens = tokens_for(client, ada)
    with api(hub, create_token(hub, ada)) as script:
        script.patch(f"/api/settings/connected-apps/{client.id}", json={"organizations": [acme.id]})
    with api(hub, tokens["access_token"]) as app:
        listed = {org["sub"]: set(org) for org in app.get("/oauth/userinfo").json()["organizations"]}
    every = {"sub", "name", "preferred_username", "picture"}
    ticked = {"roleInOrg", "plan", "securityRestrictions", "resourceGroups"}
    assert listed == {acme.id: every | ticked, other.id: every}
    page = re.sub(r"</?code>", "", lean_http.get(hub.url + SIGN_IN).text)
    assert "lists all of the user's organizations, with sub, name, preferred_username, picture." in page
    assert "Only organizations that the user ticked have roleInOrg: base access decisions on it." in page


def test_lifetimes_and_grants_match_the_page(hub: RunningHub) -> None:
    olga = create_user(hub, "olga")
    client = create_app(hub, olga, token_lifetime=7200)
    with browser_of(hub, olga) as browser:
        page = browser.get(f"{SIGN_IN}?app={client.id}").text
    for what, how_long in (
        ("Code", "1 minute"),
        ("ID token", "1 hour"),
        ("Refresh token", "90 days after its last use"),
    ):
        assert f"<dt>{what}</dt><dd>{how_long}</dd>" in page
    assert "<dt>Access token</dt><dd>2 hours" in page
    grants = lean_http.get(f"{hub.url}/.well-known/openid-configuration").json()["grant_types_supported"]
    assert re.findall(r'<tr><th scope="row"><code>([\w:]+(?:-type:[\w-]+)?)</code></th><td><span', page) == grants


def test_page_says_where_an_organizations_id_is_found(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    acme = create_organization(hub, "acme", ada)
    with browser_of(hub, ada) as browser:
        settings = browser.get("/organizations/acme/settings/profile").text
        assert f'<code id="organization-id">{acme.id}</code>' in settings
        assert 'data-copy="organization-id"' in settings
        docs = re.sub(r"</?code>", "", browser.get(SIGN_IN).text)
    assert "_id in /api/organizations/NAME/overview" in docs
    assert lean_http.get(f"{hub.url}/api/organizations/acme/overview").json()["_id"] == acme.id


def test_docs_index_links_to_every_page(hub: RunningHub) -> None:
    page = lean_http.get(f"{hub.url}/docs").text
    assert '<a href="/docs">Docs</a>' in page, "in the footer of every page"
    found = re.findall(r'<li><a href="(/docs/[\w-]+)">', page)
    assert found == ["/docs/sign-in", "/docs/cimd", "/docs/protect", "/docs/webhooks", "/docs/api"]
    for address in found:
        shown = lean_http.get(hub.url + address)
        assert shown.status_code == 200
        in_navigation = f'<li><a href="{address}" aria-current="page">' in shown.text
        assert in_navigation, f"{address} is beside its neighbours"


def shape_of(document: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    shape: dict[str, Any] = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return shape


def test_api_page_shows_form_fields(hub: RunningHub) -> None:
    document = lean_http.get(f"{hub.url}/api/openapi.json").json()
    page = lean_http.get(f"{hub.url}/docs/api/sign-in").text
    for path, name in (
        ("/oauth/token", "TokenRequest"),
        ("/oauth/revoke", "SubmittedToken"),
        ("/oauth/introspect", "SubmittedToken"),
    ):
        body = document["paths"][path]["post"]["requestBody"]["content"]["application/x-www-form-urlencoded"]
        assert body["schema"]["$ref"].endswith(f"/{name}")
        link = f'<a href="#shape-{name.lower()}">{name}</a>'
        assert f"<h4>Body</h4>\n<p>{link}, as application/x-www-form-urlencoded</p>" in page
        article = page[page.index(f'id="shape-{name.lower()}"') :].partition("</article>")[0]
        for field in shape_of(document, body["schema"])["properties"]:
            assert f"<dt><code>{field}</code></dt>" in article


def test_answers_about_users_and_tokens_match_their_schema(hub: RunningHub) -> None:
    ada, olga = create_user(hub, "ada"), create_user(hub, "olga")
    create_organization(hub, "acme", ada, plan="team")
    client = create_app(hub, olga, scopes=(*SCOPES, "read-billing"), refresh_tokens=True)
    tokens = tokens_for(client, ada)
    document = lean_http.get(f"{hub.url}/api/openapi.json").json()

    def answer(path: str, method: str) -> dict[str, Any]:
        return document["paths"][path][method]["responses"]["200"]["content"]["application/json"]["schema"]

    userinfo, introspection = (
        shape_of(document, answer("/oauth/userinfo", "get")),
        shape_of(document, answer("/oauth/introspect", "post")),
    )
    with api(hub, tokens["access_token"]) as app:
        said = app.get("/oauth/userinfo").json()
    assert set(userinfo["required"]) <= set(said) <= set(userinfo["properties"])
    assert "canPay" in said
    for token in (tokens["access_token"], tokens["refresh_token"], "x"):
        said = client.post("/oauth/introspect", {"token": token}).json()
        assert set(introspection["required"]) <= set(said) <= set(introspection["properties"])
