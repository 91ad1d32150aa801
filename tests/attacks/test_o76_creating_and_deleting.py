"""O76: names cannot be hoarded by creating and deleting organizations or accounts in a loop."""

import httpx
import pytest
from tests.bed.concurrency import run_concurrently
from tests.bed.people import PASSWORD, api, browser_of, create_token, create_user, fill_form, submit
from tests.bed.repos import create_repo
from tests.bed.running_hub import RunningHub

DAY = 24 * 3600
PER_DAY = 20


def create(browser: httpx.Client, name: str) -> httpx.Response:
    return submit(browser, "/organizations/new", name=name, fullname="")


def delete(browser: httpx.Client, name: str) -> None:
    deleted = submit(browser, f"/organizations/{name}/settings/delete", name=name)
    assert (deleted.status_code, deleted.headers["location"]) == (303, "/settings/organizations")


def is_free(hub: RunningHub, name: str) -> bool:
    with browser_of(hub, create_user(hub, f"probe-{name}")) as browser:
        answer = create(browser, name)
        assert answer.status_code in (303, 422), answer.text
        return answer.status_code == 303


def test_o76_user_may_create_twenty_organizations_a_day(hub: RunningHub) -> None:
    with browser_of(hub, create_user(hub, "eve")) as browser:
        for number in range(PER_DAY):
            assert create(browser, f"brand{number}").status_code == 303
            delete(browser, f"brand{number}")
        assert create(browser, "a name").status_code == 422, "what is wrong with a name is still said"
        refused = create(browser, "one-more")
        assert refused.status_code == 429
        assert 0 < int(refused.headers["retry-after"]) <= DAY
        assert "20 organizations a day" in refused.text
        hub.clock.advance(DAY + 1)
        assert create(browser, "one-more").status_code == 303


def test_o76_concurrent_creations_do_not_pass_the_limit(hub: RunningHub) -> None:
    with browser_of(hub, create_user(hub, "eve")) as browser:
        for number in range(PER_DAY - 3):
            assert create(browser, f"brand{number}").status_code == 303
        posts = [fill_form(browser, "/organizations/new", name=f"more{n}", fullname="") for n in range(6)]
        answers = sorted(answer.status_code for answer in run_concurrently(posts))
    assert answers == [303] * 3 + [429] * 3


def test_o76_name_of_a_briefly_unused_organization_is_free_again(hub: RunningHub) -> None:
    eve = create_user(hub, "eve")
    with browser_of(hub, eve) as browser, api(hub, create_token(hub, eve)) as script:
        for name in ("passed", "with-repo", "old"):
            assert create(browser, name).status_code == 303
        create_repo(script, "with-repo/tiny")
        gone = script.request("DELETE", "/api/repos/delete", json={"name": "tiny", "organization": "with-repo"})
        assert gone.status_code == 200, gone.text
        delete(browser, "passed")
        delete(browser, "with-repo")
        hub.clock.advance(DAY)
        delete(browser, "old")
    assert [is_free(hub, name) for name in ("passed", "with-repo", "old")] == [True, False, False]


@pytest.mark.parametrize("held", ["shortly", "with a repo", "for a day"])
def test_o76_name_of_a_briefly_used_account_without_repos_is_free_again(hub: RunningHub, held: str) -> None:
    eve = create_user(hub, "eve")
    with browser_of(hub, eve) as browser, api(hub, create_token(hub, eve)) as script:
        if held == "with a repo":
            create_repo(script, "eve/tiny")
        if held == "for a day":
            hub.clock.advance(DAY)
        assert submit(browser, "/settings/delete", name="eve", password=PASSWORD).status_code == 303
    assert is_free(hub, "eve") is (held == "shortly")
