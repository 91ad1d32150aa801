"""The app, the user or the organization is deleted while the user decides: a page says so, and no consent remains."""

from contextlib import ExitStack
from functools import partial

import httpx
import pytest
from tests.bed.apps import Client, create_app
from tests.bed.concurrency import run_concurrently
from tests.bed.people import Page, api, browser_of, create_organization, create_token, create_user
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts import own_account
from hubgate.server.accounts.model import User
from hubgate.server.accounts.organizations import settings
from hubgate.server.audit.model import SYSTEM
from hubgate.server.resources import Hub

ROUNDS, PEOPLE = 8, 5


def filled(browser: httpx.Client, address: str, **fields: object) -> partial[httpx.Response]:
    """Fill in the consent form with everything ticked; the returned function presses Allow."""
    shown = browser.get(address)
    assert shown.status_code == 200, shown.text[:300]
    form = {**Page(shown).hidden(), "decision": "approve", "scopes": ["read-repos"], **fields}
    return partial(browser.post, address, data=form)


def consents_of(hub: RunningHub, client: Client) -> int:
    async def work(opened: Hub) -> int:
        sql = "SELECT count(*) AS n FROM consents WHERE client_id = :id"
        row = await opened.db.one(sql, {"id": client.id})
        return int(row["n"]) if row else 0

    return hub.call(work)


def test_app_deleted_during_the_approval_leaves_no_consent(hub: RunningHub) -> None:
    owner, people = create_user(hub, "olga"), [create_user(hub, f"user{number}") for number in range(PEOPLE)]
    with ExitStack() as open_until_done:
        script = open_until_done.enter_context(api(hub, create_token(hub, owner)))
        browsers = [open_until_done.enter_context(browser_of(hub, user)) for user in people]
        for _ in range(ROUNDS):
            client = create_app(hub, owner)
            calls = [filled(browser, client.address()) for browser in browsers]
            delete = partial(script.delete, f"/api/settings/applications/{client.id}")
            deleted, *answers = run_concurrently([delete, *calls])
            assert deleted.status_code in (200, 204), deleted.text
            for answer in answers:
                assert answer.status_code in (303, 400), answer.text
                if answer.status_code == 400:
                    assert "this hub does not know the app" in answer.text
                else:
                    assert "code=" in answer.headers["location"]
            assert consents_of(hub, client) == 0


@pytest.mark.one_engine
def test_approval_of_a_deleted_app_is_rejected(hub: RunningHub) -> None:
    owner, ada = create_user(hub, "olga"), create_user(hub, "ada")
    client = create_app(hub, owner)
    with api(hub, create_token(hub, owner)) as script, browser_of(hub, ada) as browser:
        allow = filled(browser, client.address())
        script.delete(f"/api/settings/applications/{client.id}")
        assert allow().status_code == 400


def test_user_deleted_during_the_approval_leaves_no_consent(hub: RunningHub) -> None:
    client = create_app(hub, create_user(hub, "olga"))
    for number in range(3):
        user = create_user(hub, f"user{number}")

        def delete(user: User = user) -> httpx.Response:
            hub.call(lambda opened: own_account.delete(opened.accounts, user, SYSTEM))
            return httpx.Response(204)

        with ExitStack() as open_until_done:
            browsers = [open_until_done.enter_context(browser_of(hub, user)) for _ in range(PEOPLE)]
            _, *answers = run_concurrently([delete, *(filled(browser, client.address()) for browser in browsers)])
        assert {answer.status_code for answer in answers} <= {303}, [answer.text[:300] for answer in answers]
    assert consents_of(hub, client) == 0


@pytest.mark.one_engine
def test_approval_succeeds_although_an_organization_is_deleted(hub: RunningHub) -> None:
    client = create_app(hub, create_user(hub, "olga"))
    ada = create_user(hub, "ada")
    with browser_of(hub, ada) as browser:
        for number in range(ROUNDS):
            acme = create_organization(hub, f"acme{number}", ada)
            address = client.address(prompt="consent")

            def delete(acme: object = acme) -> httpx.Response:
                hub.call(lambda opened: settings.delete(opened.accounts, acme, SYSTEM))  # type: ignore[arg-type]
                return httpx.Response(204)

            _, answer = run_concurrently([delete, filled(browser, address, orgs=[acme.id])])
            assert answer.status_code == 303, answer.text
