"""Every settings page and form: who has access, and what each form requires."""

from collections.abc import Mapping
from urllib.parse import quote

import httpx
import pytest
from tests.bed.people import Page, browser_of, create_organization, create_token, create_user
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts.model import User
from hubgate.server.accounts.sessions import store as session_store
from hubgate.server.accounts.tokens import personal
from hubgate.server.app import build_app
from hubgate.server.resources import Hub

pytestmark = pytest.mark.one_engine

ID = "0" * 24
CLIENT = "0a1b2c3d-0000-4000-8000-000000000000"
PAGES = [
    "/settings",
    "/settings/profile",
    "/settings/password",
    "/settings/sessions",
    "/settings/tokens",
    "/settings/tokens/fine-grained",
    f"/settings/tokens/{ID}",
    f"/settings/tokens/{ID}/refresh",
    f"/settings/tokens/{ID}/revoke",
    "/settings/organizations",
    "/settings/organizations/acme/leave",
    "/settings/export",
    "/settings/delete",
    "/settings/connected",
    f"/settings/connected/{CLIENT}",
    f"/settings/connected/{CLIENT}/revoke",
    "/settings/applications",
    "/settings/applications/new",
    f"/settings/applications/{CLIENT}",
    f"/settings/applications/{CLIENT}/secret",
    f"/settings/applications/{CLIENT}/secret/delete",
    f"/settings/applications/{CLIENT}/delete",
    f"/settings/applications/{CLIENT}/ask/scope",
    "/settings/resources",
    "/settings/resources/new",
    f"/settings/resources/{ID}",
    f"/settings/resources/{ID}/secret",
    f"/settings/resources/{ID}/delete",
    "/settings/webhooks",
    "/settings/webhooks/new",
    f"/settings/webhooks/{ID}",
    f"/settings/webhooks/{ID}/settings",
    f"/settings/webhooks/{ID}/events",
    f"/settings/webhooks/{ID}/secret",
    f"/settings/webhooks/{ID}/secret/remove",
    f"/settings/webhooks/{ID}/delete",
    f"/settings/webhooks/{ID}/replays",
    f"/settings/webhooks/{ID}/replays/{ID}",
    f"/settings/webhooks/{ID}/rows",
    f"/settings/webhooks/{ID}/why-not",
    "/settings/webhooks/suggestions",
    f"/settings/webhooks/{ID}/deliveries/{ID}",
    f"/settings/webhooks/{ID}/deliveries/{ID}/payload",
    "/settings/redirects",
]
FORMS = [
    "/settings/redirects/model/tiny/unlink",
    "/settings/profile",
    "/settings/picture",
    "/settings/picture/delete",
    "/settings/discussion-mail",
    "/settings/rename",
    "/settings/email",
    "/settings/email/confirmation",
    "/settings/billing",
    "/settings/password",
    f"/settings/sessions/{ID}/end",
    "/settings/sessions/end-others",
    "/settings/tokens",
    "/settings/tokens/fine-grained",
    f"/settings/tokens/{ID}",
    f"/settings/tokens/{ID}/refresh",
    f"/settings/tokens/{ID}/revoke",
    f"/settings/organizations/invitations/{ID}/accept",
    f"/settings/organizations/invitations/{ID}/decline",
    "/settings/organizations/acme/leave",
    "/settings/delete",
    f"/settings/connected/{CLIENT}",
    f"/settings/connected/{CLIENT}/revoke",
    "/settings/applications",
    f"/settings/applications/{CLIENT}",
    f"/settings/applications/{CLIENT}/secret",
    f"/settings/applications/{CLIENT}/secret/delete",
    f"/settings/applications/{CLIENT}/secret/end",
    f"/settings/applications/{CLIENT}/logo",
    f"/settings/applications/{CLIENT}/logo/delete",
    f"/settings/applications/{CLIENT}/delete",
    f"/settings/applications/{CLIENT}/ask/scope",
    "/settings/resources",
    f"/settings/resources/{ID}",
    f"/settings/resources/{ID}/verify",
    f"/settings/resources/{ID}/secret",
    f"/settings/resources/{ID}/delete",
    "/settings/webhooks",
    f"/settings/webhooks/{ID}/settings",
    f"/settings/webhooks/{ID}/dry-run",
    "/settings/webhooks/dry-run",
    f"/settings/webhooks/{ID}/enable",
    f"/settings/webhooks/{ID}/disable",
    f"/settings/webhooks/{ID}/test",
    f"/settings/webhooks/{ID}/secret",
    f"/settings/webhooks/{ID}/secret/remove",
    f"/settings/webhooks/{ID}/delete",
    f"/settings/webhooks/{ID}/deliveries/{ID}/replay",
    f"/settings/webhooks/{ID}/replays",
    f"/settings/webhooks/{ID}/replays/{ID}/cancel",
]


FORMS_WITH_FILES = ("/settings/picture", f"/settings/applications/{CLIENT}/logo")


def submit(browser: httpx.Client, path: str, fields: Mapping[str, str]) -> httpx.Response:
    if path in FORMS_WITH_FILES:
        return browser.post(path, files=[(name, (None, value)) for name, value in fields.items()])
    return browser.post(path, data=fields)


def token_id(hub: RunningHub, user: User) -> str:
    return hub.call(lambda opened: personal.of_user(opened.accounts, user.id))[0].id


def _filled(path: str) -> str:
    for name, value in (
        ("id", ID),
        ("delivery", ID),
        ("replay", ID),
        ("name", "acme"),
        ("client_id", CLIENT),
        ("type", "model"),
        ("repo", "tiny"),
    ):
        path = path.replace(f"{{{name}}}", value)
    return path


def test_every_page_and_form_is_covered_here(hub: RunningHub) -> None:
    async def addresses(opened: Hub) -> set[tuple[str, str]]:
        routes = [route for route in build_app(opened).table.routes if f"{route.path}/".startswith("/settings/")]
        return {(route.method, _filled(route.path)) for route in routes}

    assert hub.call(addresses) == {("GET", path) for path in PAGES} | {("POST", path) for path in FORMS}


def test_visitor_is_sent_to_sign_in(hub: RunningHub) -> None:
    with browser_of(hub) as visitor:
        answers = {path: visitor.get(path) for path in PAGES}
    assert {path: (answer.status_code, answer.headers.get("location")) for path, answer in answers.items()} == {
        path: (303, f"/login?next={quote(path, safe='')}") for path in PAGES
    }


def test_token_opens_no_page(hub: RunningHub) -> None:
    token = create_token(hub, create_user(hub, "ada"))
    with hub.client(headers={"authorization": f"Bearer {token}"}) as program:
        assert program.get("/settings/profile").status_code == 303


@pytest.mark.parametrize("given", ["missing", "empty", "another's"])
def test_o35_form_with_a_missing_or_foreign_csrf_token_is_403(hub: RunningHub, given: str) -> None:
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    create_organization(hub, "acme", bob, ada="read")
    with browser_of(hub, ada) as mine, browser_of(hub, bob) as theirs:
        foreign = Page(theirs.get("/settings/profile")).hidden()["csrf"]
        csrf = {"missing": {}, "empty": {"csrf": ""}, "another's": {"csrf": foreign}}[given]
        statuses = {path: submit(mine, path, {"name": "x", **csrf}).status_code for path in FORMS}
    assert statuses == dict.fromkeys(FORMS, 403)


def test_ended_session_submits_no_form(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    with browser_of(hub, ada) as client:
        hidden = Page(client.get("/settings/profile")).hidden()
        hub.call(lambda opened: opened.db.write(lambda tx: session_store.remove_all(tx, ada.id)))
        statuses = {path: submit(client, path, hidden).status_code for path in FORMS}
    assert statuses == dict.fromkeys(FORMS, 401)


@pytest.mark.parametrize("end", ["", "/refresh", "/revoke"])
def test_another_users_token_is_404(hub: RunningHub, end: str) -> None:
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    create_token(hub, ada)
    address = f"/settings/tokens/{token_id(hub, ada)}{end}"
    with browser_of(hub, ada) as owner, browser_of(hub, bob) as other:
        shown = owner.get(address)
        assert shown.status_code == 200
        assert other.get(address).status_code == 404
        own_form = Page(other.get("/settings/tokens")).hidden("/settings/tokens")
        assert other.post(address, data={**own_form, "name": "mine now"}).status_code == 404
        assert owner.get(address).text.count("mine now") == 0


def test_first_page_is_the_profile(hub: RunningHub) -> None:
    with browser_of(hub, create_user(hub, "ada")) as client:
        response = client.get("/settings")
    assert (response.status_code, response.headers["location"]) == (303, "/settings/profile")


@pytest.mark.parametrize("path", ["/settings/tokens", "/settings/sessions", "/settings/organizations"])
def test_invalid_page_number_is_404(hub: RunningHub, path: str) -> None:
    with browser_of(hub, create_user(hub, "ada")) as client:
        for page in ("0", "2", "x", "-1", "²", "9" * 30):
            assert client.get(path, params={"page": page}).status_code == 404, page
        assert client.get(path, params={"page": "1"}).status_code == 200
