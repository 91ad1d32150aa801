"""O73: mail that others cause does not use up a user's own, and a sender's invitations are limited per day."""

import httpx
from tests.bed.concurrency import run_concurrently
from tests.bed.people import browser_of, create_organization, create_user, fill_form, link_in, mails_to, submit
from tests.bed.running_hub import RunningHub

DAY = 24 * 3600


def invite(client: httpx.Client, organization: str, invitee: str) -> httpx.Response:
    return submit(client, f"/organizations/{organization}/settings/members", invitee=invitee, role="read")


def subjects(hub: RunningHub, address: str) -> list[str]:
    return [mail["Subject"] for mail in mails_to(hub, address, 0)]


def test_o73_invitations_do_not_use_up_resets(hub: RunningHub) -> None:
    eve, bob = create_user(hub, "eve"), create_user(hub, "bob")
    create_organization(hub, "acme", eve)
    with browser_of(hub, eve) as sender, hub.client() as owner:
        statuses = [invite(sender, "acme", bob.email).status_code for _ in range(6)]
        assert statuses == [303] * 5 + [429], "each kind of mail has its own limit"
        assert submit(owner, "/reset", email=bob.email).status_code == 200
    assert subjects(hub, bob.email).count("Reset your password") == 1


def test_o73_mail_caused_by_others_does_not_use_up_a_users_own(hub: RunningHub) -> None:
    """Caused by signing up with the address, and by moving another account to it."""
    eve, ada = create_user(hub, "eve"), create_user(hub, "ada", verified=False)
    with browser_of(hub, eve) as sender, hub.client() as stranger:
        for number in range(5):
            form = {"username": f"name{number}", "email": ada.email, "password": "some passphrase"}
            assert submit(stranger, "/join", **form).status_code == 200
            moved = {"email": ada.email, "password": "correct horse battery"}
            assert submit(sender, "/settings/profile", "/settings/email", **moved).status_code == 303
    with browser_of(hub, ada) as owner:
        assert submit(owner, "/", "/settings/email/confirmation").status_code == 303
        assert submit(owner, "/reset", email=ada.email).status_code == 200
    said = subjects(hub, ada.email)
    assert (said.count("Confirm your e-mail"), said.count("Reset your password")) == (2, 1)


def test_o73_operators_resets_do_not_use_up_a_users_own(hub: RunningHub) -> None:
    boss, ada = create_user(hub, "boss", operator=True), create_user(hub, "ada")
    with browser_of(hub, boss) as operator:
        page = "/operator/users/ada/reset"
        assert [submit(operator, "/operator/users", page).status_code for _ in range(6)] == [303] * 5 + [429]
    with hub.client() as owner:
        assert submit(owner, "/reset", email=ada.email).status_code == 200
    assert subjects(hub, ada.email).count("Reset your password") == 6


def test_o73_sender_may_send_50_invitations_a_day(hub: RunningHub) -> None:
    eve, bob = create_user(hub, "eve"), create_user(hub, "bob")
    create_organization(hub, "acme", eve, bob="admin")
    create_organization(hub, "other", eve)
    with browser_of(hub, eve) as sender, browser_of(hub, bob) as another:
        for number in range(50):
            organization = "acme" if number % 2 else "other"
            assert invite(sender, organization, f"guest{number}@example.com").status_code == 303
        refused = invite(sender, "acme", "one-more@example.com")
        assert (refused.status_code, refused.headers["retry-after"]) == (429, str(DAY))
        assert "You can send 50 invitations a day. Try again in 24 hours." in refused.text
        assert 'href="#invitee"' in refused.text
        assert subjects(hub, "one-more@example.com") == []
        assert invite(another, "acme", "one-more@example.com").status_code == 303, "counted by sender"
        hub.clock.advance(DAY)
        assert invite(sender, "acme", "tomorrow@example.com").status_code == 303
    assert link_in(mails_to(hub, "tomorrow@example.com")[0]).startswith("/invitations/")


def test_o73_rejected_invitations_do_not_count(hub: RunningHub) -> None:
    eve = create_user(hub, "eve")
    create_user(hub, "bob")
    create_organization(hub, "acme", eve, bob="read")
    with browser_of(hub, eve) as sender:
        for _ in range(51):
            assert invite(sender, "acme", "bob").status_code == 422
        assert invite(sender, "acme", "guest@example.com").status_code == 303


def test_o73_concurrent_invitations_do_not_pass_the_limit(hub: RunningHub) -> None:
    eve, left = create_user(hub, "eve"), 3
    create_organization(hub, "acme", eve)
    page = "/organizations/acme/settings/members"
    with browser_of(hub, eve) as sender:
        for number in range(50 - left):
            assert invite(sender, "acme", f"guest{number}@example.com").status_code == 303
        forms = [fill_form(sender, page, invitee=f"last{number}@example.com", role="read") for number in range(8)]
        assert sorted(answer.status_code for answer in run_concurrently(forms)) == [303] * left + [429] * (8 - left)
