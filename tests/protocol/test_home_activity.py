"""Recent activity on the home page: what happened to one's repos, organizations and what one watches."""

import re
from html import unescape

import httpx
import pytest
from tests.bed.people import api, browser_of, create_organization, create_token, create_user
from tests.bed.repos import create_commit, create_repo
from tests.bed.running_hub import RunningHub
from tests.bed.webhooks import create_webhook


def activity(browser: httpx.Client) -> dict[str, list[str]]:
    """The lines of each repo, in order, without their times."""
    page = browser.get("/")
    assert page.status_code == 200
    found = {}
    for item in re.findall(r'<li class="panel activity">(.*?)</ul>', page.text, re.DOTALL):
        head, _, rest = item.partition("</h3>")
        lines = re.findall(r"<li>(.*?)</li>", rest, re.DOTALL)
        found[plain(head.partition(' <span class="caption">')[0])] = [plain(line) for line in lines]
    return found


def plain(text: str) -> str:
    without_times = re.sub(r"<time.*?</time>", "", text, flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]+>", "", without_times)).split()).removesuffix(" ·").strip()


def test_changes_are_grouped_by_repo_latest_first(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    create_organization(hub, "acme", ada)
    with api(hub, create_token(hub, ada)) as client, browser_of(hub, ada) as browser:
        assert activity(browser) == {}
        for name in ("acme/one", "ada/two", "ada/three"):
            hub.clock.advance(1)
            create_repo(client, name)
        for number in range(2):
            hub.clock.advance(1)
            create_commit(client, "acme/one", {"x": str(number).encode()})
        steps = (
            ("POST", "/api/models/acme/one/discussions", {"title": "Too large", "description": "x"}),
            ("POST", "/api/models/acme/one/discussions/1/comment", {"comment": "Why?"}),
            ("POST", "/api/models/acme/one/tag/main", {"tag": "v1"}),
            ("PUT", "/api/models/ada/two/settings", {"private": True}),
            ("DELETE", "/api/repos/delete", {"name": "three", "type": "model"}),
            ("POST", "/api/repos/move", {"fromRepo": "ada/two", "toRepo": "ada/four", "type": "model"}),
        )
        for method, address, body in steps:
            hub.clock.advance(1)
            assert client.request(method, address, json=body).is_success, address
        assert activity(browser) == {
            "ada/four": ["Moved from ada/two", "Made private", "Created"],
            "ada/three": ["Deleted"],
            "acme/one": ["Tag v1 created", "Comment in #1: Too large", "#1 opened: Too large"],
        }


@pytest.mark.one_engine
def test_new_commits_link_to_the_history_of_their_branch(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    with api(hub, create_token(hub, ada)) as client, browser_of(hub, ada) as browser:
        create_repo(client, "ada/one")
        assert client.post("/api/models/ada/one/branch/a%2Fb", json={}).is_success
        create_commit(client, "ada/one", {"x": b"x"}, rev="a/b")
        assert activity(browser)["ada/one"][0] == "New commits on a/b"
        assert '<a href="/ada/one/commits/a%2Fb">' in browser.get("/").text
        assert browser.get("/ada/one/commits/a%2Fb").status_code == 200


@pytest.mark.one_engine
def test_activity_shows_nothing_that_the_user_may_not_see(hub: RunningHub) -> None:
    ada, bob, eve = (create_user(hub, name) for name in ("ada", "bob", "eve"))
    create_organization(hub, "acme", ada, bob="read")
    with (
        api(hub, create_token(hub, ada)) as client,
        api(hub, create_token(hub, eve)) as spy,
        browser_of(hub, eve) as stranger,
        browser_of(hub, bob) as member,
    ):
        for watched in ("org:acme", "user:ada", "model:acme/plan", "model:acme/later"):
            create_webhook(spy, "https://example.com/hook", watched)
        create_repo(client, "acme/plan", private=True)
        create_repo(client, "acme/later", private=True)
        create_commit(client, "acme/later", {"x": b"x"})
        create_repo(client, "acme/open")
        assert client.put("/api/models/acme/later/settings", json={"private": False}).status_code == 200
        # Events from before the repo became public stay private.
        assert activity(stranger) == {"acme/later": ["Made public"], "acme/open": ["Created"]}
        assert set(activity(member)) == {"acme/plan", "acme/later", "acme/open"}
        # The titles of removed discussions are not shown, and a former member sees what a stranger sees.
        address = "/api/models/acme/open/discussions"
        assert client.post(address, json={"title": "Insult", "description": "x"}).status_code == 200
        assert "Insult" in stranger.get("/").text
        assert client.request("DELETE", f"{address}/1").is_success
        assert activity(stranger)["acme/open"] == ["#1 removed", "Created"]
        assert client.delete("/api/organizations/acme/members/bob").status_code == 200
        assert activity(member) == {}
        assert client.put("/api/models/acme/open/settings", json={"private": True}).status_code == 200
        assert set(activity(stranger)) == {"acme/later"}
