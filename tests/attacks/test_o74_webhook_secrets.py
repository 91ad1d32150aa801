"""O74: a webhook's secret is returned only in the response that set it."""

import httpx
import pytest
from tests.bed.apps import SCOPES, approve, create_app, redirect_parameters
from tests.bed.event_streams import open_stream
from tests.bed.people import api, browser_of, create_organization, create_token, create_user
from tests.bed.repos import create_repo
from tests.bed.running_hub import RunningHub
from tests.bed.webhooks import settle

pytestmark = pytest.mark.one_engine

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
BODY = {"url": "https://receiver.example/hook", "watched": [{"type": "user", "name": "ada"}]}


@pytest.mark.parametrize("at", ["/api/settings/webhooks", "/api/organizations/acme/settings/webhooks"])
def test_o74_secret_cannot_be_read_back(hub: RunningHub, at: str) -> None:
    ada = create_user(hub, "ada")
    acme = create_organization(hub, "acme", ada)
    app = create_app(hub, ada, scopes=(*SCOPES, "webhooks"))
    with browser_of(hub, ada) as browser:
        code = redirect_parameters(approve(browser, app.address(), orgs=[acme.id]))["code"]
    with api(hub, create_token(hub, ada)) as owner:
        created = owner.post(at, json={**BODY, "secret": SECRET}).json()["webhook"]
        assert (created["secret"], created["hasSecret"]) == (SECRET, True)
        one = f"{at}/{created['id']}"
        credentials = {
            "write": create_token(hub, ada),
            "read": create_token(hub, ada, role="read"),
            "webhooks": app.redeem(code).json()["access_token"],
        }
        for name, token in credentials.items():
            with api(hub, token) as caller:
                listed = caller.get(at)
                assert [webhook["hasSecret"] for webhook in listed.json()] == [True], name
                says_no_secret(listed)
                says_no_secret(caller.get(one))
                assert caller.get(one).json()["webhook"]["hasSecret"] is True
                if name != "read":
                    for answer in (
                        caller.post(one, json={"domains": ["repo"]}),
                        caller.post(one, json={**BODY, "domains": ["repo"], "secret": None}),
                        caller.post(f"{one}/disable"),
                        caller.post(f"{one}/enable"),
                    ):
                        says_no_secret(answer)
        replaced = owner.post(one, json={"secret": "another", "overlapSeconds": 60}).json()["webhook"]
        assert replaced["secret"] == "another"
        removed = owner.post(one, json={"secret": ""}).json()["webhook"]
        assert ("secret" in removed, removed["hasSecret"]) == (False, False)


def test_o74_pulled_events_are_signed_without_the_secret(hub: RunningHub) -> None:
    """The hub sends the secret to a receiver in a header, which pages and streams of events leave out."""
    ada = create_user(hub, "ada")
    with api(hub, create_token(hub, ada)) as owner, api(hub, create_token(hub, ada, role="read")) as reader:
        body = {"pull": True, "watched": BODY["watched"], "secret": SECRET}
        webhook = owner.post("/api/settings/webhooks", json=body).json()["webhook"]
        events = f"/api/settings/webhooks/{webhook['id']}/events"
        create_repo(owner, "tiny")
        settle(hub)
        pulled = reader.get(events)
        says_no_secret(pulled)
        with open_stream(reader, events) as stream:
            assert stream.next() == pulled.json()["events"]
        (event,) = pulled.json()["events"]
        assert event["headers"]["webhook-signature"].startswith("v1,")
        assert "x-webhook-secret" not in {name.lower() for name in event["headers"]}


def says_no_secret(answer: httpx.Response) -> None:
    assert answer.status_code == 200, answer.text
    assert SECRET not in answer.text
    assert '"secret"' not in answer.text
