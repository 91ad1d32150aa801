"""`/setup/{secret}`: the link that `serve` prints creates the first operator, once."""

from contextlib import ExitStack

import pytest
from tests.bed.concurrency import run_concurrently
from tests.bed.people import PASSWORD, create_user, fill_form, link_in, mails_to, setup_link, submit
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts import store
from hubgate.server.resources import Hub

pytestmark = pytest.mark.one_engine


def is_operator(hub: RunningHub, name: str) -> bool:
    async def work(opened: Hub) -> bool:
        user = await store.user_by_name(opened.db, name)
        return user is not None and bool(user.operator)

    return hub.call(work)


def test_link_creates_the_operator_and_signs_them_in(hub: RunningHub) -> None:
    link = setup_link(hub)
    with hub.client() as client:
        response = submit(client, link, username="root1", email="root@example.org", password=PASSWORD)
        assert (response.status_code, response.headers["location"]) == (303, "/")
        home = client.get("/").text
        assert "This hub is set up, and you are its operator." in home
        assert 'href="/operator"' in home
        assert is_operator(hub, "root1")
        assert link_in(mails_to(hub, "root@example.org")[0]).startswith("/verify/")
        assert client.get(link).status_code == 404
    with hub.client() as client:
        assert client.get(link).status_code == 404


def test_wrong_link_is_rejected(hub: RunningHub) -> None:
    link = setup_link(hub)
    with hub.client() as client:
        for wrong in (link[:-1], link + "A", "/setup/x", "/setup/%C3%A9", link.lower()):
            assert client.get(wrong).status_code == 404, wrong


def test_invalid_form_does_not_use_up_the_link(hub: RunningHub) -> None:
    create_user(hub, "ada")
    link = setup_link(hub)
    with hub.client() as client:
        for name, email in (("ada", "new@example.org"), ("boss", "ada@example.org"), ("boss", "no address")):
            response = submit(client, link, username=name, email=email, password=PASSWORD)
            assert response.status_code == 422
            assert f'action="{link}"' in response.text
        assert submit(client, link, username="boss", email="boss@example.org", password=PASSWORD).status_code == 303


def test_link_ends_if_an_operator_exists(hub: RunningHub) -> None:
    link = setup_link(hub)
    create_user(hub, "boss", operator=True)
    with hub.client() as client:
        assert client.get(link).status_code == 404


def test_concurrent_uses_create_one_operator(hub: RunningHub) -> None:
    link = setup_link(hub)
    with ExitStack() as stack:
        forms = []
        for number in range(6):
            client, name = stack.enter_context(hub.client()), f"boss{number}"
            forms.append(fill_form(client, link, username=name, email=f"{name}@example.org", password=PASSWORD))
        answers = run_concurrently(forms)
    assert sorted(answer.status_code for answer in answers) == [303] + [404] * 5
    made = [is_operator(hub, f"boss{number}") for number in range(6)]
    assert made == [answer.status_code == 303 for answer in answers]
