"""O68: a new password ends sessions and tokens that somebody who knew the old one may have left, and the mail says
which.
"""

import pytest
from tests.bed.account_assets import EVERYTHING, SIGN_INS, create_account_assets
from tests.bed.apps import tokens_for
from tests.bed.people import PASSWORD, VISITOR, browser_of, create_organization, create_user, link_in, mails_to, submit
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts.model import User
from hubgate.server.accounts.organizations import invitations
from hubgate.server.accounts.roles import Role
from hubgate.server.audit.model import Actor
from hubgate.server.errors import Unauthorized
from hubgate.server.resources import Hub

NEW = "another horse battery"


def last_mail(hub: RunningHub, user: User) -> str:
    mail = mails_to(hub, user.email)[-1]
    assert mail["Subject"] == "Your password was changed"
    return " ".join(mail.get_content().split())


def reset(hub: RunningHub, user: User) -> None:
    with hub.client() as client:
        assert submit(client, "/reset", email=user.email).status_code == 200
        assert submit(client, link_in(mails_to(hub, user.email)[-1]), password=NEW).status_code == 303


@pytest.mark.one_engine
def test_o68_reset_ends_sessions_and_app_tokens(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    belongings = create_account_assets(hub, ada)
    hub.clock.advance(1)
    reset(hub, ada)
    assert belongings.usable() == EVERYTHING - SIGN_INS
    assert "Revoked: 1 session, 1 app token, 1 refresh token. 1 personal token still works." in last_mail(hub, ada)


@pytest.mark.one_engine
def test_o68_change_ends_other_sessions_and_app_tokens(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    belongings = create_account_assets(hub, ada)
    hub.clock.advance(1)
    with browser_of(hub, ada) as browser:
        form = {"current_password": PASSWORD, "new_password": NEW}
        assert submit(browser, "/settings/password", **form).status_code == 303
        shown = browser.get("/settings/password")
        assert shown.status_code == 200, "this browser stays signed in"
        assert "Password changed. Revoked: 1 other session, 1 app token, 1 refresh token." in shown.text
    assert belongings.usable() == EVERYTHING - SIGN_INS
    said = last_mail(hub, ada)
    assert "Revoked: 1 other session, 1 app token, 1 refresh token. 1 personal token still works." in said


@pytest.mark.one_engine
def test_o68_mail_counts_what_was_active(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    belongings = create_account_assets(hub, ada)
    tokens_for(belongings.app, ada)
    hub.clock.advance(31 * 24 * 3600)
    with browser_of(hub, ada), browser_of(hub, ada):
        reset(hub, ada)
    assert "Revoked: 2 sessions, 2 refresh tokens." in last_mail(hub, ada), "the others had expired"


@pytest.mark.one_engine
def test_o68_mail_says_when_nothing_was_open(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    reset(hub, ada)
    assert "No sessions or app tokens were active." in last_mail(hub, ada)


@pytest.mark.one_engine
def test_o68_app_only_needs_a_new_sign_in(hub: RunningHub) -> None:
    """The consent remains: with a new session the app gets tokens without another consent page."""
    ada = create_user(hub, "ada")
    belongings = create_account_assets(hub, ada)
    reset(hub, ada)
    with browser_of(hub, ada) as browser:
        assert browser.get(belongings.app.address()).status_code == 303


def test_o68_organization_requests_in_flight_are_rejected(hub: RunningHub) -> None:
    """An intruder's request was authorized before the change of password and is executed after it."""
    ada = create_user(hub, "ada")
    acme = create_organization(hub, "acme", ada)
    intruder = Actor(ada.name, ada.id, VISITOR.ip, credentials_version=ada.credentials_version)
    reset(hub, ada)

    async def work(opened: Hub) -> None:
        await invitations.invite(opened.accounts, acme, "eve@example.com", Role.ADMIN, intruder)

    with pytest.raises(Unauthorized):
        hub.call(work)
