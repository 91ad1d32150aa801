"""The billing flag: users and organizations set it on their settings pages; apps see it with the scope read-billing."""

from tests.bed.apps import create_app, token_of
from tests.bed.people import api, browser_of, create_organization, create_user, submit
from tests.bed.running_hub import RunningHub

SCOPES = ("openid", "profile", "read-repos", "read-billing")


def flags(hub: RunningHub, token: str) -> list[tuple[bool | None, bool | None]]:
    """`canPay` of the user and of the organization: in whoami, then in userinfo."""
    found = []
    for path in ("/api/whoami-v2", "/oauth/userinfo"):
        with api(hub, token) as client:
            shown = client.get(path).json()
        orgs = [org.get("canPay") for org in shown["orgs"]] or [None]
        found.append((shown.get("canPay"), orgs[0]))
    return found


def test_billing_flag_is_shown_to_apps_with_read_billing(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    acme = create_organization(hub, "acme", ada)
    app = create_app(hub, scopes=SCOPES)
    personal = token_of(create_app(hub, name="Personal", scopes=SCOPES), ada, "read-billing")
    both = token_of(app, ada, "read-billing", acme)
    without = token_of(create_app(hub, name="Without", scopes=SCOPES), ada, "read-repos profile", acme)
    # An organization that was not granted shows nothing about its billing.
    assert flags(hub, personal) == [(False, None), (False, None)]
    assert flags(hub, both) == [(False, False), (False, False)]
    with browser_of(hub, ada) as browser:
        page = "/settings/profile"
        assert submit(browser, page, "/settings/billing", can_pay="on").status_code == 303
        assert 'name="can_pay" value="on" checked' in browser.get(page).text
        assert flags(hub, both) == [(True, False), (True, False)]
        page = "/organizations/acme/settings/profile"
        assert submit(browser, page, "/organizations/acme/settings/billing", can_pay="on").status_code == 303
        assert flags(hub, both) == [(True, True), (True, True)]
        assert flags(hub, without) == [(None, None), (None, None)]
        assert submit(browser, "/settings/profile", "/settings/billing").status_code == 303
    assert flags(hub, personal) == [(False, None), (False, None)]
