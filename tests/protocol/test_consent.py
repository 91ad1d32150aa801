"""The consent page, and what its checkboxes grant."""

import re
from html import unescape

import httpx
import pytest
from msgspec.structs import replace
from tests.bed.apps import Client, approve, create_app, pkce_pair, redirect_parameters
from tests.bed.cimd_documents import store_document
from tests.bed.concurrency import run_concurrently
from tests.bed.people import Page, api, browser_of, create_organization, create_user
from tests.bed.running_hub import RunningHub

from hubgate.server.oauth.apps import store as app_store
from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.consent import store as consent_store
from hubgate.server.resources import Hub
from hubgate.server.scopes import BUILT_IN_SCOPES

PKCE = {"code_challenge": pkce_pair()[1], "code_challenge_method": "S256"}


def words(response: httpx.Response) -> str:
    """The text of <main>, without tags."""
    assert response.status_code == 200, (response.status_code, response.headers.get("location"))
    main = response.text.partition("<main")[2].partition("</main>")[0].partition(">")[2]
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", main)).split()).replace(" .", ".").replace(" ,", ",")


def boxes(response: httpx.Response, name: str) -> dict[str, str]:
    """The state of each value of a field: "ticked", "free" or "fixed"."""
    found = {}
    for tag in re.findall(rf'<input [^>]*name="{name}"[^>]*>', response.text):
        value = re.search(r'value="([^"]*)"', tag)
        assert value is not None
        state = "fixed" if 'type="hidden"' in tag else "ticked" if " checked" in tag else "free"
        found[value.group(1)] = state
    return found


def change_app(client: Client, **given: object) -> Client:
    """Change the app as its owner would."""
    app: App = replace(client.app, **given)  # type: ignore[arg-type]

    async def work(opened: Hub) -> bool:
        return await opened.db.write(lambda tx: app_store.update(tx, app))

    assert client.hub.call(work)
    return Client(client.hub, app, client.secret)


def grant_of(hub: RunningHub, client: Client, user_id: str) -> tuple[set[str], set[str]]:
    async def work(opened: Hub) -> tuple[set[str], set[str]]:
        consent = await consent_store.find(opened.db, user_id, client.id)
        assert consent is not None
        return set(consent.scopes), set(consent.organizations)

    return hub.call(work)


@pytest.mark.one_engine
def test_page_describes_a_registered_app(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    create_organization(hub, "acme", ada)
    client = create_app(
        hub, create_user(hub, "olga"), name="Notebook", scopes=tuple(scope.name for scope in BUILT_IN_SCOPES)
    )
    with browser_of(hub, ada) as browser:
        shown = browser.get(client.address())
    text = words(shown)
    in_order = [
        "N Notebook wants to use your account",
        "app.example",
        "Registered by @olga on 2026-09-21",
        "Signed in as @ada. Use another account",
        "Make changes or act on your behalf",
        "Create, edit, move and delete all your repos manage-repos",
        "Read and edit all your repos, including private ones write-repos",
        "Create repos, and use only the repos it created contribute-repos",
        "Read, create, edit and delete your collections write-collections",
        "Open discussions and pull requests, comment, react and close on your behalf write-discussions",
        "Create and edit webhooks, which decide where notifications are sent webhooks",
        "Run jobs on your behalf; may cost money jobs",
        "Send inference requests on your behalf; may cost money inference-api",
        "See private information",
        "Read your repos, including private ones, and those of the organizations you tick read-repos",
        "Read gated public repos you have access to; nothing private gated-repos",
        "Read your collections, including private ones read-collections",
        "See whether you and the organizations you tick have a payment method; no details read-billing",
        "See your e-mail address email",
        "Know who you are",
        "See your name, avatar and website profile",
        "Recognize you when you come back openid",
        "Untick anything you don't want to share. Items marked ✓ are required.",
        "Organization access",
        "acme admin",
        "The permissions above also apply to the organizations you tick, within your role there.",
        "You will continue to app.example. You can change or revoke this at any time under Connected apps.",
        "Deny Allow",
    ]
    places = [text.find(sentence) for sentence in in_order]
    assert -1 not in places, in_order[places.index(-1)]
    assert places == sorted(places)
    assert "You will be sent to" not in text
    assert "runs on your own computer" not in text
    assert "form-action" not in shown.headers["content-security-policy"]
    first_button = shown.text[shown.text.index("<button") :].partition(">")[0]
    assert first_button == "<button hidden disabled", "Enter decides nothing"


@pytest.mark.one_engine
def test_required_scopes_are_fixed_and_others_can_be_unticked(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    acme, beta = (create_organization(hub, name, ada) for name in ("acme", "beta"))
    client = create_app(
        hub, None, scopes=("openid", "profile", "email", "read-repos", "jobs", "webhooks"), required_scopes=("jobs",)
    )
    with browser_of(hub, ada) as browser:
        shown = browser.get(client.address(scope="openid email read-repos jobs", orgIds=beta.id))
        assert boxes(shown, "scopes") == {
            "openid": "fixed",
            "email": "fixed",
            "jobs": "fixed",
            "read-repos": "ticked",
        }
        assert boxes(shown, "orgs") == {acme.id: "free", beta.id: "ticked"}
        assert "beta admin Requested by Notebook" in words(shown)
        sent = approve(browser, client.address(scope="openid email read-repos jobs"), scopes=[])
    assert client.redeem(redirect_parameters(sent)["code"]).json()["scope"] == "openid email jobs", (
        "fixed even if left out"
    )


@pytest.mark.one_engine
def test_organizations_may_be_requested_in_any_spelling(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    a, b, c, d = (create_organization(hub, name, ada).id for name in ("aa", "bb", "cc", "dd"))
    client = create_app(hub)
    with browser_of(hub, ada) as browser:
        shown = browser.get(f"{client.address()}&orgIds={a}&orgIds={b},{c}&orgIds=&orgIds=,%20{a}")
    assert boxes(shown, "orgs") == {a: "ticked", b: "ticked", c: "ticked", d: "free"}


@pytest.mark.one_engine
def test_user_without_organizations_is_not_asked_about_them(hub: RunningHub) -> None:
    client = create_app(hub)
    with browser_of(hub, create_user(hub, "ada")) as browser:
        assert "Organization access" not in words(browser.get(client.address()))


@pytest.mark.one_engine
def test_token_has_the_approved_scopes_and_the_grant_is_the_union(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    client = create_app(hub, scopes=("openid", "profile", "read-repos", "jobs", "webhooks"))
    with browser_of(hub, ada) as browser:
        approve(browser, client.address(scope="openid read-repos"))
        sent = approve(browser, client.address(scope="openid jobs webhooks"), scopes=["jobs"])
        assert client.redeem(redirect_parameters(sent)["code"]).json()["scope"] == "openid jobs"
        assert grant_of(hub, client, ada.id)[0] == {"openid", "read-repos", "jobs"}
        sent = browser.get(client.address(scope="openid read-repos jobs"))
        assert client.redeem(redirect_parameters(sent)["code"]).json()["scope"] == "openid read-repos jobs"
        assert browser.get(client.address(scope="openid webhooks")).status_code == 200
        approve(browser, client.address(scope="openid read-repos", prompt="consent"), scopes=[])
        assert grant_of(hub, client, ada.id)[0] == {"openid", "jobs"}, "shown and left unticked leaves the grant"


@pytest.mark.one_engine
def test_organizations_belong_to_the_grant(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    acme, beta = (create_organization(hub, name, ada) for name in ("acme", "beta"))
    client = create_app(hub)
    with browser_of(hub, ada) as browser:
        sent = approve(browser, client.address(), orgs=[acme.id])
        token = client.redeem(redirect_parameters(sent)["code"]).json()["access_token"]
        assert reached(hub, token) == {"acme"}
        assert "code" in redirect_parameters(browser.get(client.address(orgIds=acme.id)))
        shown = browser.get(client.address(orgIds=f"{acme.id},{beta.id}"))
        assert boxes(shown, "orgs") == {acme.id: "ticked", beta.id: "ticked"}
        assert "acme admin Already allowed beta admin Requested by Notebook" in words(shown)
        approve(browser, client.address(orgIds=beta.id), orgs=[beta.id])
        assert reached(hub, token) == {"beta"}, "live tokens follow, both ways"
        approve(browser, client.address(prompt="consent"), orgs=[])
        assert reached(hub, token) == set()


def reached(hub: RunningHub, token: str) -> set[str]:
    """The organizations whose role a token shows at userinfo."""
    with api(hub, token) as app:
        said = app.get("/oauth/userinfo").json()
    return {org["preferred_username"] for org in said["orgs"] if "roleInOrg" in org}


@pytest.mark.one_engine
def test_page_describes_an_app_with_a_metadata_document(hub: RunningHub) -> None:
    client = store_document(hub, redirect_uris=["https://elsewhere.example/cb"], client_uri="https://bank.example")
    with browser_of(hub, create_user(hub, "ada")) as browser:
        text = words(browser.get(client.address(scope=None, **PKCE)))
    for sentence in (
        "F Field Notes wants to use your account",
        "notes.example Not registered on this hub. Identified only by this address.",
        "You will be sent to elsewhere.example",
        "You will continue to elsewhere.example.",
    ):
        assert sentence in text
    assert "bank.example" not in text
    assert text.index("notes.example") < text.index("elsewhere.example")


@pytest.mark.one_engine
def test_hosts_are_shown_in_full_and_in_punycode(hub: RunningHub) -> None:
    long = "xn--" + "-".join(["a1b2c3"] * 8) + ".xn--80ak6aa92e.example:8443"
    client = create_app(hub, None, redirect_uris=(f"https://{long}/cb",))
    with browser_of(hub, create_user(hub, "ada")) as browser:
        page = browser.get(client.address()).text
    assert f'<p class="consent-host">{long}</p>' in page


@pytest.mark.one_engine
def test_document_client_on_this_computer_is_warned_about_and_always_needs_consent(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    uris = ["http://127.0.0.1/cb", "http://localhost/cb", "com.example.notes:/cb", "https://notes.example/cb"]
    client = store_document(hub, redirect_uris=uris)
    expected = {
        "http://127.0.0.1:4711/cb": "this computer (127.0.0.1)",
        "http://localhost:4711/cb": "this computer (localhost)",
        "com.example.notes:/cb": "an app on this device (com.example.notes)",
    }
    with browser_of(hub, ada) as browser:
        for uri, host in expected.items():
            address = client.address(redirect_uri=uri, scope="openid", **PKCE)
            text = words(browser.get(address))
            assert (
                f"You will be sent to {host} This app runs on your own computer and cannot prove its identity." in text
            )
            assert "Continue only if you just started it." in text
            approve(browser, address)
            assert browser.get(address).status_code == 200, "asked again, although everything was allowed"
            assert browser.post(address).status_code == 200, "the page, as after GET"
            assert redirect_parameters(browser.get(f"{address}&prompt=none"))["error"] == "consent_required"
        plain = client.address(redirect_uri="https://notes.example/cb", scope="openid", **PKCE)
        approve(browser, plain)
        assert "code" in redirect_parameters(browser.get(plain))


@pytest.mark.one_engine
def test_registered_app_on_this_computer_is_warned_about(hub: RunningHub) -> None:
    client = create_app(hub, None, redirect_uris=("http://localhost/cb",), confidential=False)
    with browser_of(hub, create_user(hub, "ada")) as browser:
        address = client.address(redirect_uri="http://localhost:3000/cb", **PKCE)
        assert "This app runs on your own computer" in words(browser.get(address))
        approve(browser, address)
        assert "code" in redirect_parameters(browser.get(address))


@pytest.mark.one_engine
def test_changed_document_needs_consent_and_the_page_says_what_changed(hub: RunningHub) -> None:
    ada, client = create_user(hub, "ada"), store_document(hub)
    asked = {"scope": "openid", **PKCE}
    with browser_of(hub, ada) as browser:
        approve(browser, client.address(**asked))
        assert "code" in redirect_parameters(browser.get(client.address(**asked)))
        for members, said in (
            ({"client_name": "Your Bank"}, "its name, which was Field Notes."),
            ({"redirect_uris": [*client.app.redirect_uris, "https://notes.example/x"]}, "where it sends you."),
            (
                {"client_name": "Other", "redirect_uris": [*client.app.redirect_uris, "https://a.example/"]},
                "its name, which was Field Notes, and where it sends you.",
            ),
        ):
            store_document(hub, **members)
            text = words(browser.get(client.address(**asked)))
            assert f"Changed since you last approved it: {said}" in text
        approve(browser, client.address(**asked))
        assert "code" in redirect_parameters(browser.get(client.address(**asked))), "until that is allowed too"


@pytest.mark.one_engine
def test_new_host_or_name_of_a_registered_app_needs_consent(hub: RunningHub) -> None:
    ada, client = create_user(hub, "ada"), create_app(hub)
    first = client.app.redirect_uris[0]
    with browser_of(hub, ada) as browser:
        approve(browser, client.address())
        change_app(client, redirect_uris=(first, "https://app.example/second"))
        assert "code" in redirect_parameters(browser.get(client.address())), "another page of the same host"
        change_app(client, redirect_uris=(first, "https://evil.example/"))
        assert "where it sends you." in words(browser.get(client.address()))
        change_app(client, name="Another")
        assert "its name, which was Notebook." in words(browser.get(client.address()))


@pytest.mark.one_engine
def test_name_of_invisible_characters_is_replaced_by_the_host(hub: RunningHub) -> None:
    client = store_document(hub, client_name="\u200b\u202e\u2066")
    with browser_of(hub, create_user(hub, "ada")) as browser:
        assert "notes.example wants to use your account" in words(browser.get(client.address(scope=None, **PKCE)))


@pytest.mark.one_engine
def test_page_describes_an_app_without_scopes(hub: RunningHub) -> None:
    client = create_app(hub, scopes=())
    with browser_of(hub, create_user(hub, "ada")) as browser:
        text = words(browser.get(client.address(scope=None)))
        assert "The app requests no permissions. It can only recognize you when you come back." in text
        assert "Untick" not in text
        sent = approve(browser, client.address(scope=None))
    assert client.redeem(redirect_parameters(sent)["code"]).json()["scope"] == ""


@pytest.mark.one_engine
def test_form_without_a_decision_is_rejected(hub: RunningHub) -> None:
    client = create_app(hub)
    with browser_of(hub, create_user(hub, "ada")) as browser:
        for decision in ("", "perhaps"):
            assert approve(browser, client.address(), decision=decision).status_code == 422
        assert approve(browser, client.address(), decision=["approve", "deny"]).status_code == 400
        assert browser.get(client.address()).status_code == 200


@pytest.mark.one_engine
def test_decision_after_signing_out_leads_to_the_sign_in_page(hub: RunningHub) -> None:
    client = create_app(hub)
    with browser_of(hub, create_user(hub, "ada")) as browser:
        form = {**Page(browser.get(client.address())).hidden(), "decision": "approve"}
        browser.cookies.delete("token")
        sent = browser.post(client.address(), data=form)
    assert sent.status_code == 303
    assert sent.headers["location"].startswith("/login?")


def test_concurrent_approvals_do_not_undo_each_other(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    scopes = ("read-repos", "jobs", "webhooks", "read-billing", "gated-repos", "inference-api")
    client = create_app(hub, scopes=scopes)
    with browser_of(hub, ada) as browser:
        pages = {scope: Page(browser.get(client.address(scope=scope))) for scope in scopes}

        def allow(scope: str) -> httpx.Response:
            form = {**pages[scope].hidden(), "decision": "approve", "scopes": scope}
            return browser.post(client.address(scope=scope), data=form)

        answers = run_concurrently([lambda scope=scope: allow(scope) for scope in scopes])  # type: ignore[misc]
    assert all("code" in redirect_parameters(answer) for answer in answers)
    assert grant_of(hub, client, ada.id)[0] == set(scopes)
