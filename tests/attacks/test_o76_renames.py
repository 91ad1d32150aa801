"""O76: renaming in a loop reserves no names and is limited."""

import httpx
import pytest
from tests.bed.concurrency import run_concurrently
from tests.bed.people import api, browser_of, create_organization, create_token, create_user, fill_form, submit
from tests.bed.repos import create_repo
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts.organizations import settings
from hubgate.server.audit.model import SYSTEM

DAY = 24 * 3600
PER_DAY = 5


def rename_user(browser: httpx.Client, name: str) -> httpx.Response:
    return submit(browser, "/settings/profile", "/settings/rename", username=name)


def rename_organization(browser: httpx.Client, old: str, new: str) -> httpx.Response:
    at = f"/organizations/{old}/settings"
    return submit(browser, f"{at}/profile", f"{at}/rename", name=new)


def is_free(hub: RunningHub, name: str) -> bool:
    with browser_of(hub, create_user(hub, f"probe-{name}")) as browser:
        answer = rename_user(browser, name)
        assert answer.status_code in (303, 422), answer.text
        return answer.status_code == 303


def refused_today(answer: httpx.Response) -> None:
    assert answer.status_code == 429
    assert 0 < int(answer.headers["retry-after"]) <= DAY
    assert "five times a day" in answer.text


def test_o76_user_may_be_renamed_five_times_a_day(hub: RunningHub) -> None:
    with browser_of(hub, create_user(hub, "eve")) as browser:
        for number in range(PER_DAY):
            assert rename_user(browser, f"name{number}").status_code == 303
        assert rename_user(browser, "a name").status_code == 422, "what is wrong with a name is still said"
        refused_today(rename_user(browser, "one-more"))
        assert rename_user(browser, "name4").status_code == 303, "the present name is not a rename"
        hub.clock.advance(DAY + 1)
        with browser_of(hub, create_user(hub, "bob")) as other:
            assert rename_user(other, "one-more").status_code == 303, "a refused rename takes no name"


def test_o76_organization_may_be_renamed_five_times_a_day(hub: RunningHub) -> None:
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    acme = create_organization(hub, "acme", ada, bob="admin")
    with browser_of(hub, ada) as first, browser_of(hub, bob) as second:
        for number in range(PER_DAY):
            browser = (first, second)[number % 2]
            old = f"acme{number - 1}" if number else "acme"
            assert rename_organization(browser, old, f"acme{number}").status_code == 303
        for browser in (first, second):
            refused_today(rename_organization(browser, "acme4", "acme5"))
        hub.call(lambda opened: settings.rename(opened.accounts, acme, "operators-word", SYSTEM))
        hub.clock.advance(DAY + 1)
        assert rename_organization(first, "operators-word", "acme5").status_code == 303


def test_o76_concurrent_renames_do_not_pass_the_limit(hub: RunningHub) -> None:
    with browser_of(hub, create_user(hub, "eve")) as browser:
        posts = [fill_form(browser, "/settings/profile", "/settings/rename", username=f"n{n}") for n in range(8)]
        answers = sorted(answer.status_code for answer in run_concurrently(posts))
    assert answers == [303] * PER_DAY + [429] * 3


@pytest.mark.parametrize("kind", ["user", "organization"])
def test_o76_briefly_used_names_are_free_again(hub: RunningHub, kind: str) -> None:
    ada = create_user(hub, "ada")
    create_organization(hub, "acme", ada)
    hub.clock.advance(DAY)
    old = "ada" if kind == "user" else "acme"
    with browser_of(hub, ada) as browser:
        for before, after in ((old, "one"), ("one", "two"), ("two", "three")):
            rename = rename_user(browser, after) if kind == "user" else rename_organization(browser, before, after)
            assert rename.status_code == 303
    with api(hub) as anyone:
        assert anyone.get(f"/api/{kind}s/{old}/overview").status_code == 307, "held for a day: it leads on"
        for passed in ("one", "two"):
            assert anyone.get(f"/api/{kind}s/{passed}/overview").status_code == 404
    assert [is_free(hub, name) for name in (old, "one", "two", "three")] == [False, True, True, False]


def test_o76_name_that_had_repos_stays_reserved(hub: RunningHub) -> None:
    eve = create_user(hub, "eve")
    with browser_of(hub, eve) as browser, api(hub, create_token(hub, eve)) as script, api(hub) as anyone:
        assert rename_user(browser, "with-repo").status_code == 303
        create_repo(script, "tiny")
        assert rename_user(browser, "passed").status_code == 303
        assert script.request("DELETE", "/api/repos/delete", json={"name": "tiny"}).status_code == 200
        assert rename_user(browser, "without").status_code == 303
        assert rename_user(browser, "last").status_code == 303
        assert anyone.get("/api/users/with-repo/overview").status_code == 307
    names = ("eve", "with-repo", "passed", "without", "last")
    assert [is_free(hub, name) for name in names] == [True, False, False, True, False]


def test_o76_name_used_for_a_day_stays_reserved(hub: RunningHub) -> None:
    with browser_of(hub, create_user(hub, "eve")) as browser:
        assert rename_user(browser, "one").status_code == 303
        hub.clock.advance(DAY)
        assert rename_user(browser, "two").status_code == 303
        assert rename_user(browser, "one").status_code == 303, "one's own former name may be taken again"
        assert rename_user(browser, "three").status_code == 303
    assert [is_free(hub, name) for name in ("one", "two")] == [False, True]
