"""huggingface_hub.attach_huggingface_oauth, which stores all its data in one cookie, signs users in."""

import pytest
from playwright.sync_api import Page
from tests.bed.apps import create_app
from tests.bed.people import create_organization, create_user
from tests.bed.running_hub import RunningHub
from tests.bed.sites import Site, decide, json_at, sign_in

from hubgate.server.accounts import field_checks, names, own_account

pytestmark = pytest.mark.browser
# Of a cookie's name and value together; a browser drops a larger one, and the user would have to sign in forever.
LARGEST_COOKIE = 4096
FULLNAME = "😀" * field_checks.LONGEST_FULLNAME
WEBSITE = "https://ada.example/".ljust(field_checks.LONGEST_WEBSITE, "x")


@pytest.mark.parametrize("version", ["0.36", "1.28", "2.4"])
def test_user_with_ten_organizations_signs_in(
    sqlite_today: RunningHub, its_site: Site, page: Page, version: str
) -> None:
    hub = sqlite_today
    name = "a" * names.LONGEST_NAME
    user = create_user(hub, name)
    hub.call(lambda opened: own_account.set_profile(opened.accounts, user, FULLNAME, WEBSITE))
    organizations = [
        create_organization(hub, f"{number}{'o' * (names.LONGEST_NAME - 1)}", user) for number in range(10)
    ]
    # The library adds `?_target_url=...` to its redirect URI, which exact matching would reject.
    client = create_app(
        hub, create_user(hub, "olga"), redirect_uris=(its_site.url,), redirect_match="origin", name="Space"
    )
    assert client.secret is not None
    its_site.run_python(
        f"attach_oauth-{version}",
        "attach_site.py",
        SPACE_ID="olga/space",
        OAUTH_CLIENT_ID=client.id,
        OAUTH_CLIENT_SECRET=client.secret,
        OAUTH_SCOPES=" ".join(client.app.scopes),
        OPENID_PROVIDER_URL=hub.url,
    )
    page.goto(f"{its_site.url}/oauth/huggingface/login?_target_url=/?after=signing+in")
    sign_in(page, name)
    for organization in organizations:
        page.get_by_role("checkbox", name=organization.name).check()
    decide(page, "Space")
    said = json_at(page, f"{its_site.url}/?after=")
    assert (said["user"]["sub"], said["user"]["preferred_username"]) == (user.id, name)
    assert said["user"]["email"] == f"{name}@example.org"
    assert said["scope"].split() == ["read-repos", "email", "profile", "openid"]
    assert {org["id"] for org in said["whoami"]["orgs"]} == {organization.id for organization in organizations}
    (session,) = page.context.cookies(its_site.url)
    assert len(session["name"]) + len(session["value"]) < LARGEST_COOKIE
    page.goto(f"{its_site.url}/oauth/huggingface/logout")
    assert json_at(page, f"{its_site.url}/") == {"user": None}
