"""`/api/settings/resources` and the same of an organization, and their pages: register, change, prove, delete."""

import re
from typing import Any

import pytest
from tests.bed.organizations import entries_of
from tests.bed.people import api, browser_of, create_organization, create_token, create_user, submit
from tests.bed.resource_servers import IDENTIFIER, register
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts import operator_actions
from hubgate.server.worker.sweep import Sweep

pytestmark = pytest.mark.one_engine

OWN, ACME = "/api/settings/resources", "/api/organizations/acme/settings/resources"
TOOLS = {"name": "mcp:tools", "text": "Use your tools"}
NEW = {"identifier": IDENTIFIER, "name": "Toolbox", "scopes": [TOOLS]}


def asks(hub: RunningHub, server_id: str, secret: str) -> int:
    with hub.client(auth=(server_id, secret)) as http:
        return http.post("/oauth/introspect", data={"token": "x"}).status_code


def test_resource_server_is_registered_changed_and_deleted(hub: RunningHub) -> None:
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    with api(hub, create_token(hub, ada)) as script, api(hub, create_token(hub, bob)) as stranger:
        created = script.post(OWN, json=NEW)
        assert created.status_code == 201, created.text
        body = created.json()
        at, secret = f"{OWN}/{body['id']}", body.pop("secret")
        assert body == {
            "id": body["id"],
            "identifier": IDENTIFIER,
            "name": "Toolbox",
            "scopes": [TOOLS],
            "tokens": "opaque",
            "organization": None,
            "active": False,
            "challenge": {
                "url": "https://mcp.example/.well-known/hubgate-challenge",
                "content": body["challenge"]["content"],
            },
            "createdAt": "2026-09-21T14:13:20.000Z",
        }
        # Another hub cannot pass this challenge off as its own: it would prove control to this hub, for its operator.
        assert body["challenge"]["content"].startswith(f"{hub.url.removeprefix('http://')}:")
        assert script.get(at).json() == body
        assert script.get(OWN).json() == [body]
        assert stranger.get(at).status_code == stranger.delete(at).status_code == 404
        with hub.client(auth=(body["id"], secret)) as server:
            refused = server.post("/oauth/introspect", data={"token": "x"})
        assert (refused.status_code, refused.json()["error"]) == (401, "invalid_client")
        assert "has not been proved" in refused.json()["error_description"]
        changed = script.patch(at, json={**body, "name": "Tools", "tokens": "jwt", "scopes": []}).json()
        assert (changed["name"], changed["tokens"], changed["scopes"]) == ("Tools", "jwt", [])
        for field, value in (("identifier", "https://other.example/"), ("active", True), ("id", "x")):
            answer = script.patch(at, json={field: value})
            assert (answer.status_code, "read-only" in answer.text) == (422, True), field
        assert script.post(OWN, json=NEW).json()["error"] == "You have registered this identifier already."
        assert script.delete(at).status_code == 204
        assert script.get(at).status_code == 404
        assert asks(hub, body["id"], secret) == 401


def test_secret_is_replaced_at_once(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    tools = register(hub, ada)
    with api(hub, create_token(hub, ada)) as script:
        fresh = script.post(f"{OWN}/{tools.server.id}/secret").json()["secret"]
    assert asks(hub, tools.server.id, tools.secret) == 401
    assert asks(hub, tools.server.id, fresh) == 200
    assert asks(hub, "65f0c0ffee0000000000abcd", fresh) == 401


def test_old_secret_stays_valid_during_the_overlap(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    tools = register(hub, ada)
    at, own = f"{OWN}/{tools.server.id}/secret", f"/settings/resources/{tools.server.id}"

    def valid(*secrets: str) -> list[bool]:
        return [asks(hub, tools.server.id, secret) == 200 for secret in secrets]

    with api(hub, create_token(hub, ada)) as script, browser_of(hub, ada) as browser:
        for seconds in (-1, 7 * 24 * 60 * 60 + 1, "x"):
            assert script.post(at, json={"overlapSeconds": seconds}).status_code == 422, seconds
        second = script.post(at, json={"overlapSeconds": 3600}).json()["secret"]
        assert valid(tools.secret, second) == [True, True]
        assert "An old secret is still valid" in browser.get(own).text
        third = submit(browser, f"{own}/secret", f"{own}/secret", overlapSeconds=str(24 * 60 * 60))
        assert "The old secret stays valid for 1 day." in third.text
        hub.clock.advance(3600)
        assert valid(tools.secret, second) == [False, True], "an overlap never prolongs an earlier one"
        hub.call(lambda opened: Sweep(opened.db, opened.clock).step())
        assert valid(second) == [True]
        for _ in range(3):
            assert script.post(at, json={"overlapSeconds": 3600}).status_code == 200
        full = script.post(at, json={"overlapSeconds": 3600})
        assert (full.status_code, "5 secrets are still valid" in full.text) == (422, True)
        last = script.post(at).json()["secret"]
        assert valid(second, last) == [False, True]
        assert "still valid" not in browser.get(own).text


# Characters that count as printable but show nothing: fillers, empty patterns, marks without a letter.
BLANK = ("\u3164", "\u2800", "\u115f\u1160", "\uffa0 \u3164", "\u034f", "\ufe0f")
INVALID: tuple[tuple[str, Any, str], ...] = (
    ("identifier", "mcp.example/mcp", "must be an address"),
    ("identifier", "ftp://mcp.example/", "must be an address"),
    ("identifier", "https://user@mcp.example/", "must be an address"),
    ("identifier", "https://mcp.example/#a", "fragment"),
    ("identifier", "http://mcp.example/", "Use https"),
    ("identifier", "HTTP://MCP.example/", "Use https"),
    ("identifier", "http://[::1", "Use https"),
    ("identifier", "https://[::1", "must be an address"),
    ("identifier", "{hub}", "on this hub"),
    ("identifier", "{hub}/mcp", "on this hub"),
    ("identifier", "{hub}/hosted/ada/tools/?x=1", "on this hub"),
    ("identifier", "{HUB}/mcp", "on this hub"),
    ("identifier", "https://mcp.example/%zz", "followed by two hexadecimal digits"),
    ("identifier", "https://mcp.example/?a=%2", "followed by two hexadecimal digits"),
    ("name", "\u202ebox", "printable"),
    *(("name", blank, "visible") for blank in BLANK),
    *(("scopes", [{"name": "a", "text": blank}], "visible") for blank in BLANK),
    ("scopes", [{"name": "read-repos", "text": "x"}], "scope of this hub"),
    ("scopes", [{"name": "offline_access", "text": "x"}], "scope of this hub"),
    ("scopes", [{"name": "a b", "text": "x"}], "not a scope's name"),
    ("scopes", [{"name": 'a"b', "text": "x"}], "not a scope's name"),
    ("scopes", [{"name": "a", "text": "\u200b"}], "a needs a text of 1 to 200 printable"),
    ("scopes", [{"name": "a", "text": "x"}, {"name": "a", "text": "y"}], "listed twice"),
    ("tokens", "paseto", "tokens"),
    ("secret", "x", "secret"),
)


def test_invalid_fields_are_rejected(hub: RunningHub) -> None:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as script:
        for field, value, says in INVALID:
            given = value
            if isinstance(value, str):
                given = value.replace("{hub}", hub.url).replace("{HUB}", hub.url.upper())
            answer = script.post(OWN, json={**NEW, field: given})
            assert (answer.status_code, says in answer.text) == (422, True), (value, answer.text)
        assert script.get(OWN).json() == []


def test_server_that_the_operator_vouches_for_is_not_called_proved(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    tools = register(hub, ada)
    with browser_of(hub, ada) as browser:
        for page in ("/settings/resources", f"/settings/resources/{tools.server.id}"):
            shown = browser.get(page).text
            assert ("Confirmed by the operator" in shown, "Proved" in shown) == (True, False), page


def test_server_of_a_disabled_owner_is_refused(hub: RunningHub) -> None:
    ada, olga = create_user(hub, "ada"), create_user(hub, "olga")
    own = register(hub, ada)
    of_acme = register(hub, create_organization(hub, "acme", olga, ada="admin"), "https://acme.example/")
    hub.call(lambda opened: operator_actions.disable(opened.accounts, ada))
    refused = own.ask("x")
    assert (refused.status_code, refused.json()["error"]) == (401, "invalid_client")
    assert "owner's account is disabled" in refused.json()["error_description"]
    assert of_acme.ask("x").status_code == 200
    hub.call(lambda opened: operator_actions.enable(opened.accounts, ada))
    assert own.ask("x").status_code == 200


def test_thousands_of_scopes_are_rejected_by_their_number(hub: RunningHub) -> None:
    """Comparing each with all others would block the hub for seconds."""
    ada = create_user(hub, "ada")
    tools = register(hub, ada)
    at = f"/settings/resources/{tools.server.id}"
    with browser_of(hub, ada) as browser:
        for page, action in (("/settings/resources/new", "/settings/resources"), (at, at)):
            form = {"name": "Tools", "identifier": "https://a.example/", "scopes": "a\n" * 15_000}
            refused = submit(browser, page, action, **form)
            assert (refused.status_code, "At most 50 scopes." in refused.text) == (422, True)


def test_organization_registers_resource_servers(hub: RunningHub) -> None:
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    acme = create_organization(hub, "acme", ada, bob="write")
    with api(hub, create_token(hub, ada)) as script, api(hub, create_token(hub, bob)) as member:
        assert member.post(ACME, json=NEW).status_code == member.get(ACME).status_code == 403
        body = script.post(ACME, json=NEW).json()
        assert (body["organization"], body["active"]) == ("acme", False)
        local = script.post(ACME, json={**NEW, "identifier": "http://127.0.0.1:9000/mcp"})
        assert (local.status_code, "your own settings" in local.json()["error"]) == (422, True)
        script.patch(f"{ACME}/{body['id']}", json={"name": "Tools"})
        script.post(f"{ACME}/{body['id']}/secret")
        assert script.delete(f"{ACME}/{body['id']}").status_code == 204
    kinds = {entry["type"] for entry in entries_of(hub, acme)}
    verbs = ("create_resource", "update_resource", "refresh_resource_secret", "delete_resource")
    assert kinds >= {f"oauth.{verb}" for verb in verbs}


def test_server_on_the_users_computer_needs_no_proof(hub: RunningHub) -> None:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as script:
        for identifier in ("http://localhost:9000/mcp", "http://127.0.0.1:9000", "https://[::1]/"):
            body = script.post(OWN, json={**NEW, "identifier": identifier}).json()
            assert (body["active"], body["challenge"]) == (True, None), identifier
            assert asks(hub, body["id"], body["secret"]) == 200


def test_pages_register_change_and_delete(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    create_organization(hub, "acme", ada)
    for root in ("/settings/resources", "/organizations/acme/settings/resources"):
        with browser_of(hub, ada) as browser:
            form = {"name": "Toolbox", "identifier": f"https://{len(root)}.example/mcp", "tokens": "opaque"}
            wrong = submit(browser, f"{root}/new", root, **form, scopes="openid x")
            assert (wrong.status_code, "openid is a scope of this hub" in wrong.text) == (422, True)
            insecure = submit(browser, f"{root}/new", root, name="", identifier="http://a.example", scopes="openid x")
            for field in ("name", "identifier", "scopes"):
                assert f'id="{field}-error"' in insecure.text, "all errors at once"
            created = submit(browser, f"{root}/new", root, **form, scopes="mcp:tools Use your tools\nmcp:x Do x")
            assert created.status_code == 200, created.text
            assert re.search(r'value="hfrs_[\w-]{43}"', created.text)
            assert "/.well-known/hubgate-challenge" in created.text
            listed = browser.get(root).text
            assert "Not proved yet" in listed
            at = re.findall(rf'href="({root}/[0-9a-f]{{24}})"', listed)[0]
            page = browser.get(at).text
            assert "mcp:tools Use your tools\nmcp:x Do x" in page
            saved = submit(browser, at, at, name="Tools", scopes="mcp:tools Use them", tokens="jwt")
            assert (saved.status_code, saved.headers["location"]) == (303, at)
            assert "Use them" in browser.get(at).text
            fresh = submit(browser, f"{at}/secret", f"{at}/secret")
            assert re.search(r'value="hfrs_[\w-]{43}"', fresh.text)
            assert submit(browser, f"{at}/delete", f"{at}/delete", name="Toolbox").status_code == 422
            assert submit(browser, f"{at}/delete", f"{at}/delete", name="Tools").status_code == 303
            assert "mcp server" in browser.get(root).text.lower()
