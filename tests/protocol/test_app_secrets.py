"""An app's page while a new secret and old ones are valid together: ending one of them, and all of them."""

import re

import pytest
from tests.bed.apps import Client, create_app
from tests.bed.organizations import entries_of
from tests.bed.people import browser_of, create_organization, create_user, post, submit
from tests.bed.running_hub import RunningHub
from tests.protocol.test_app_pages import ACME, OWN, both
from tests.protocol.test_apps_api import authenticates

from hubgate.server.audit.model import SYSTEM
from hubgate.server.oauth.apps import management
from hubgate.server.resources import Hub


def refreshed(client: Client) -> str:
    async def work(opened: Hub) -> str:
        return await management.refresh_secret(opened.oauth, client.app, 3600, SYSTEM)

    client.hub.clock.advance(1)
    return client.hub.call(work)


@both
def test_old_secret_can_be_ended_early(hub: RunningHub, root: str) -> None:
    ada = create_user(hub, "ada")
    acme = create_organization(hub, "acme", ada)
    client = create_app(hub, organization=acme) if root == ACME else create_app(hub, ada)
    first, address = client.basic[1], f"{root}/{client.id}"
    with browser_of(hub, ada) as browser:
        assert f'action="{address}/secret/end"' not in browser.get(address).text, "the only one has no end"
        second, third = refreshed(client), refreshed(client)
        page = browser.get(address).text
        offered = re.findall(r'name="lastFour" value="([^"]+)"', page)
        assert offered == [first[-4:], second[-4:]]
        ended = submit(browser, address, f"{address}/secret/end")
        assert (ended.status_code, ended.headers["location"]) == (303, address)
        shown = browser.get(address).text
        assert f"The secret that ends in {first[-4:]} no longer works." in shown
        assert re.findall(r'name="lastFour" value="([^"]+)"', shown) == [second[-4:]]
        assert [authenticates(hub, client.id, secret) for secret in (first, second, third)] == [False, True, True]
        for none in (first[-4:], third[-4:], "", "%"):
            assert post(browser, f"{address}/secret/end", lastFour=none).status_code == 404
        assert [authenticates(hub, client.id, secret) for secret in (first, second, third)] == [False, True, True]
    if root == ACME:
        (entry,) = [entry for entry in entries_of(hub, acme) if entry["type"] == "oauth.delete_secret"]
        assert (entry["author_name"], entry["message"]) == ("ada", "revoked an old secret of the app Notebook")


@pytest.mark.one_engine
def test_confirmation_page_says_how_many_secrets_end(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    client = create_app(hub, ada)
    address = f"{OWN}/{client.id}"
    with browser_of(hub, ada) as browser:
        assert f'href="{address}/secret/delete">Make the app a public client…</a>' in browser.get(address).text
        for sentence in ("Its secret stops", "Both secrets stop", "All 3 secrets stop"):
            assert f"{sentence} working immediately." in browser.get(f"{address}/secret/delete").text
            refreshed(client)


@pytest.mark.one_engine
@pytest.mark.parametrize("tail", ["", "/delete", "/end"])
def test_secrets_of_other_apps_cannot_be_ended(hub: RunningHub, tail: str) -> None:
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    acme = create_organization(hub, "acme", ada, bob="write")
    mine, ours = create_app(hub, ada), create_app(hub, organization=acme)
    with browser_of(hub, bob) as browser:
        for client, root, status in ((mine, OWN, 404), (ours, ACME, 403)):
            first = client.basic[1]
            refreshed(client)
            answer = post(browser, f"{root}/{client.id}/secret{tail}", lastFour=first[-4:])
            assert answer.status_code == status
            assert authenticates(hub, client.id, first)
