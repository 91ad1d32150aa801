"""Tables on a phone: a hidden column is hidden in the heading and in every row; the essential ones stay."""

import re

import pytest
from tests.bed.apps import approve, create_app
from tests.bed.people import browser_of, create_organization, create_token, create_user, submit
from tests.bed.processes import until
from tests.bed.resource_servers import register
from tests.bed.running_hub import RunningHub

pytestmark = pytest.mark.one_engine


def columns(page: str, label: str) -> list[list[str]]:
    """For each row of the table, the cells that a phone shows."""
    table = page.partition(f'aria-label="{label}"')[2].partition("</table>")[0]
    rows = [re.findall(r"<t([hd])([^>]*)>(.*?)</t\1>", row, re.DOTALL) for row in re.split("<tr[^>]*>", table)[1:]]
    hidden = [[place for place, (_, given, _) in enumerate(row) if "minor" in given] for row in rows]
    assert len(rows) > 1
    assert all(places == hidden[0] for places in hidden), hidden
    return [[cell for _, given, cell in row if "minor" not in given] for row in rows]


def test_connected_apps_can_be_revoked(hub: RunningHub) -> None:
    ada, client = create_user(hub, "ada"), create_app(hub)
    with browser_of(hub, ada) as browser:
        approve(browser, client.address())
        heads, cells = columns(browser.get("/settings/connected").text, "Connected apps")
        assert [re.sub(r"<[^>]+>", "", head) for head in heads] == ["App", "Change"]
        for scope in client.app.scopes:
            assert f'<code class="scope">{scope}</code>' in cells[0], "on a phone below the name"
        assert f'<a class="button button-small" href="/settings/connected/{client.id}/revoke">Revoke' in cells[1]


def test_recent_errors_show_their_reason(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    client = create_app(hub, ada)
    with browser_of(hub, ada) as browser:
        address = f"/settings/applications/{client.id}"
        assert browser.get(client.address(redirect_uri="https://app.example/other")).status_code == 400
        until(lambda: "/oauth/explain/" in browser.get(address).text)
        page = browser.get(address).text
        heads, cells = columns(page, "Recent errors")
        assert heads == ["Time", "Error"]
        (said,) = re.findall(r'<span class="caption block phone">(.*?)</span>', cells[1])
        assert said.startswith("Sign-in stopped: Notebook asked to send you to an address it has not registered.")
        assert page.count(said) == 2, "and in the column that a phone has no room for"


def test_every_other_table_hides_whole_columns(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    create_organization(hub, "acme", ada)
    create_token(hub, ada)
    create_app(hub, ada)
    register(hub, ada)
    with browser_of(hub, ada) as browser:
        for address, label in (
            ("/settings/applications", "Apps"),
            ("/settings/resources", "Resource servers"),
            ("/settings/tokens", "Access tokens"),
            ("/settings/sessions", "Sessions"),
            ("/settings/organizations", "Your organizations"),
            ("/organizations/acme/settings/members", "Members"),
            ("/organizations/acme/settings/audit-log", "Audit log"),
        ):
            assert columns(browser.get(address).text, label)


def test_email_addresses_break_only_between_their_parts(hub: RunningHub) -> None:
    ada = create_user(hub, "ada", operator=True)
    create_organization(hub, "acme", ada)
    members, adas = "/organizations/acme/settings/members", "ada<wbr>@example.<wbr>org</bdi>"
    with browser_of(hub, ada) as browser:
        assert submit(browser, members, invitee="a.long_name+x@mail.example.org", role="read").status_code == 303
        for address in ("/settings/profile", "/operator/users", members):
            assert re.search(f'<bdi class="[^"]*email[^"]*">{re.escape(adas)}', browser.get(address).text), address
        invited = "a.<wbr>long_<wbr>name+<wbr>x<wbr>@mail.<wbr>example.<wbr>org"
        assert f'<bdi class="email">{invited}</bdi>' in browser.get(members).text
