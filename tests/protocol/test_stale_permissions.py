"""A request was authorized and its caller loses the permission before it is executed: by a new password, a disabled
or deleted account, or a lost role.
"""

import time
from contextlib import ExitStack
from urllib.parse import urlsplit

import pytest
from tests.bed.concurrency import run_concurrently
from tests.bed.organizations import entries_of
from tests.bed.people import (
    PASSWORD,
    VISITOR,
    browser_of,
    create_organization,
    create_user,
    fill_form,
    link_in,
    mails_to,
    submit,
)
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts import addresses, operator_actions, own_account, password_changes, store
from hubgate.server.accounts.model import User
from hubgate.server.accounts.organizations import invitations, settings
from hubgate.server.accounts.roles import Role, TokenRole
from hubgate.server.accounts.tokens import personal
from hubgate.server.accounts.tokens.model import MAX_TOKENS_PER_USER
from hubgate.server.audit.model import SYSTEM, Actor
from hubgate.server.errors import FieldErrors, Forbidden, NotFound
from hubgate.server.resources import Hub
from hubgate.server.storage.database import Tx

NEW = "another horse battery"
ROUNDS = 20


def count(hub: RunningHub, table: str, user: User) -> int:
    async def work(opened: Hub) -> int:
        row = await opened.db.one(f"SELECT count(*) AS n FROM {table} WHERE user_id = :id", {"id": user.id})
        return int(row["n"]) if row else 0

    return hub.call(work)


def reset_path(hub: RunningHub, user: User) -> str:
    return urlsplit(hub.call(lambda opened: operator_actions.send_reset(opened.accounts, user))).path


def delete(hub: RunningHub, user: User) -> None:
    hub.call(lambda opened: own_account.delete(opened.accounts, user, SYSTEM))


@pytest.mark.one_engine
def test_old_password_cannot_change_the_address_after_a_reset(hub: RunningHub) -> None:
    """An intruder who knows the old password keeps requesting to move the account to their own address."""
    ada = create_user(hub, "ada")
    with ExitStack() as open_until_done:
        calls = []
        for number in range(9):
            intruder = open_until_done.enter_context(browser_of(hub, ada))
            form = {"email": f"eve{number}@example.org", "password": PASSWORD}
            calls.append(fill_form(intruder, "/settings/profile", "/settings/email", **form))
        owner = open_until_done.enter_context(browser_of(hub))
        calls.append(fill_form(owner, reset_path(hub, ada), password=NEW))
        *asked, reset = [response.status_code for response in run_concurrently(calls)]
    assert reset == 303
    # 401: the session had ended before the caller was identified.
    assert set(asked) <= {303, 401, 422}
    assert count(hub, "links", ada) == 0


def test_old_password_cannot_undo_a_reset(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    with ExitStack() as open_until_done:
        calls = []
        for _ in range(6):
            intruder = open_until_done.enter_context(browser_of(hub, ada))
            form = {"current_password": PASSWORD, "new_password": "chosen by the intruder"}
            calls.append(fill_form(intruder, "/settings/password", **form))
        owner = open_until_done.enter_context(browser_of(hub))
        calls.append(fill_form(owner, reset_path(hub, ada), password=NEW))
        *changed, reset = [response.status_code for response in run_concurrently(calls)]
        # A change that was first invalidated the mailed link; the owner then requests another one.
        if reset == 404:
            assert changed.count(303) == 1
            reset = submit(owner, reset_path(hub, ada), password=NEW).status_code
        assert reset == 303
        assert changed.count(303) <= 1
        assert submit(owner, "/login", username="ada", password=NEW).status_code == 303
    assert count(hub, "sessions", ada) == 1


def test_account_disabled_during_the_request_accepts_no_password(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    known = hub.call(lambda opened: store.password_hash(opened.db, ada.id))
    assert known is not None
    hub.call(lambda opened: operator_actions.disable(opened.accounts, ada))
    assert not hub.call(lambda opened: opened.db.write(lambda tx: store.lock_password(tx, ada.id, known)))


def test_disabling_an_account_ends_its_links(hub: RunningHub) -> None:
    """A thief who requested a change of address must not be mailed the owner's next reset link."""
    ada = create_user(hub, "ada")
    with browser_of(hub, ada) as thief:
        form = {"email": "thief@example.org", "password": PASSWORD}
        assert submit(thief, "/settings/profile", "/settings/email", **form).status_code == 303
    link = link_in(mails_to(hub, "thief@example.org")[0])
    reset = reset_path(hub, ada)
    hub.call(lambda opened: operator_actions.disable(opened.accounts, ada))
    with browser_of(hub) as anyone:
        assert anyone.get(link).status_code == 404
        assert anyone.get(reset).status_code == 404
    hub.call(lambda opened: operator_actions.enable(opened.accounts, ada))
    assert count(hub, "links", ada) == 0


def test_reset_requested_while_the_account_is_disabled_leaves_no_link(hub: RunningHub) -> None:
    with hub.client() as visitor:
        for number in range(ROUNDS):
            hub.clock.advance(3600)
            user = create_user(hub, f"user{number}")

            def disable(user: User = user) -> None:
                time.sleep(0.005)
                hub.call(lambda opened: operator_actions.disable(opened.accounts, user))

            run_concurrently([disable, *[fill_form(visitor, "/reset", email=user.email)] * 4])
            assert count(hub, "links", user) == 0, f"round {number}"


def test_deleted_account_is_rejected_without_a_server_error(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    with ExitStack() as open_until_done:
        browsers = [open_until_done.enter_context(browser_of(hub, ada)) for _ in range(8)]
        calls = [fill_form(browsers[0], "/settings/delete", name="ada", password=PASSWORD)]
        form = {"current_password": PASSWORD, "new_password": NEW}
        calls += [fill_form(browser, "/settings/password", **form) for browser in browsers[1:4]]
        for number, browser in enumerate(browsers[4:]):
            moved = {"email": f"new{number}@example.org", "password": PASSWORD}
            calls.append(fill_form(browser, "/settings/profile", "/settings/email", **moved))
        answers = [response.status_code for response in run_concurrently(calls)]
    assert set(answers) <= {303, 401, 422}, answers


@pytest.mark.parametrize("what", ["token", "confirmation", "reset", "invitation", "password", "address", "deletion"])
def test_each_use_case_rejects_a_deleted_account(hub: RunningHub, what: str) -> None:
    ada, bob = create_user(hub, "ada", verified=False), create_user(hub, "bob")
    acme = create_organization(hub, "acme", bob)
    admin = Actor("bob", bob.id)

    async def work(opened: Hub) -> None:
        accounts = opened.accounts
        match what:
            case "token":
                await personal.create(accounts, ada, "laptop", TokenRole.READ, VISITOR.ip)
            case "confirmation":
                await addresses.resend_confirmation(accounts, ada)
            case "reset":
                await operator_actions.send_reset(accounts, ada)
            case "invitation":
                await invitations.invite(accounts, acme, "ada", Role.READ, admin)
            case "password":
                await password_changes.change(accounts, ada, PASSWORD, NEW, VISITOR)
            case "address":
                await addresses.request_change(accounts, ada, "new@example.org", PASSWORD)
            case "deletion":
                await own_account.delete_own(accounts, ada, "ada", PASSWORD, Actor("ada", ada.id))

    delete(hub, ada)
    with pytest.raises((NotFound, FieldErrors)):
        hub.call(work)


def test_concurrent_requests_do_not_pass_the_limit_of_tokens(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")

    async def nearly(tx: Tx) -> None:
        sql = """
            INSERT INTO access_tokens (key, id, user_id, name, role, last_four, created_at)
            VALUES (:key, :id, :user_id, 'n', 'read', 'aaaa', 1)
        """
        numbers = range(MAX_TOKENS_PER_USER - 3)
        await tx.exec_many(sql, [{"key": b"%032d" % n, "id": f"{n:024x}", "user_id": ada.id} for n in numbers])

    hub.call(lambda opened: opened.db.write(nearly))
    with ExitStack() as open_until_done:
        browsers = [open_until_done.enter_context(browser_of(hub, ada)) for _ in range(20)]
        calls = [fill_form(browser, "/settings/tokens", name="laptop", role="read") for browser in browsers]
        answers = [response.status_code for response in run_concurrently(calls)]
    assert sorted(answers) == [200] * 3 + [422] * 17
    assert count(hub, "access_tokens", ada) == MAX_TOKENS_PER_USER


@pytest.mark.one_engine
def test_former_admin_cannot_change_billing(hub: RunningHub) -> None:
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    acme = create_organization(hub, "acme", ada, bob="write")
    former = Actor("bob", bob.id)
    with pytest.raises(Forbidden):
        hub.call(lambda opened: settings.set_billing(opened.accounts, acme, True, former))
    assert "org.set_billing" not in [entry["type"] for entry in entries_of(hub, acme)]


@pytest.mark.one_engine
def test_audit_log_names_the_invited_user_by_their_current_name(hub: RunningHub) -> None:
    """Not as the inviter spelled it: a Kelvin sign equals `K` in a comparison without case."""
    ada = create_user(hub, "ada")
    create_user(hub, "Kate")
    acme = create_organization(hub, "acme", ada)
    page = "/organizations/acme/settings/members"
    with browser_of(hub, ada) as browser:
        assert submit(browser, page, page, invitee="\u212aATE", role="read").status_code == 303
        hub.clock.advance(1)
        assert submit(browser, page, page, invitee="Zoe@Example.ORG", role="read").status_code == 303
    invited = [entry for entry in entries_of(hub, acme) if entry["type"] == "org.invite_user"]
    assert [entry["message"] for entry in invited] == ["invited Kate as read", "invited zoe@example.org as read"]
    assert [entry["data"]["invitee"] for entry in invited] == ["Kate", "zoe@example.org"]


@pytest.mark.one_engine
@pytest.mark.parametrize("page", ["/settings/sessions", "/settings/tokens", "/settings/organizations"])
@pytest.mark.parametrize("number", ["000000001" + "0" * 5000, "0000000019", "-1", "\u00b2"])
def test_invalid_page_number_is_404(hub: RunningHub, page: str, number: str) -> None:
    ada = create_user(hub, "ada")
    with browser_of(hub, ada) as browser:
        assert browser.get(page, params={"page": number}).status_code == 404
