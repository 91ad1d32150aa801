"""Lists of repos: public ones, those on profiles and on the home page, and the counts in overviews."""

import pytest
from tests.bed.people import api, browser_of, create_organization, create_token, create_user
from tests.bed.repos import create_commit, create_repo
from tests.bed.running_hub import RunningHub


def main_of(page: str) -> str:
    return page.partition("<main")[2].partition("</main>")[0]


def test_lists_can_be_searched_sorted_and_filtered(hub: RunningHub) -> None:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as client:
        for name in ("first", "second", "third_one"):
            create_repo(client, name)
            hub.clock.advance(1)
        create_repo(client, "words", "dataset")
        create_repo(client, "hidden", private=True)
        create_commit(client, "ada/first", {"README.md": b"---\ntags: [vision]\n---\n"})
    with hub.client() as client:
        models = main_of(client.get("/models").text)
        assert models.index('"/ada/first"') < models.index('"/ada/third_one"') < models.index('"/ada/second"')
        assert "hidden" not in models
        assert "words" not in models
        assert 'href="/datasets/ada/words"' in main_of(client.get("/datasets").text)
        assert "Public spaces and your own appear here." in main_of(client.get("/spaces").text)
        newest = main_of(client.get("/models?sort=createdAt").text)
        assert newest.index("third_one") < newest.index("second") < newest.index('"/ada/first"')
        found = main_of(client.get("/models?search=SECOND").text)
        assert "second" in found
        assert '"/ada/first"' not in found
        assert "third_one" in main_of(client.get("/models?search=third_").text)
        assert "Nothing matches." in main_of(client.get("/models?search=%25").text)
        assert "Nothing matches." in main_of(client.get("/models?search=<script>").text)
        vision = main_of(client.get("/models?filter=vision").text)
        assert vision.count('class="repo-name"') == 1
        assert client.get("/models?cursor=nonsense").status_code == 400
        assert client.get("/models?sort=nonsense").status_code == 200


def test_long_list_has_pages(hub: RunningHub) -> None:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as client:
        for number in range(33):
            create_repo(client, f"repo-{number}")
    with hub.client() as client:
        first = main_of(client.get("/models?search=repo&sort=createdAt").text)
        assert first.count('class="repo-name"') == 30
        address = first.partition('<nav class="row"')[2].partition('href="')[2].partition('"')[0].replace("&amp;", "&")
        assert "search=repo" in address
        assert "sort=createdAt" in address
        assert main_of(client.get(address).text).count('class="repo-name"') == 3
        profile = main_of(client.get("/ada").text)
        assert profile.count('class="repo-name"') == 20
        assert "Models 33" in profile


@pytest.fixture
def acme(hub: RunningHub) -> str:
    """Two models, one of them private, and a private dataset."""
    ada, _ = create_user(hub, "ada"), create_user(hub, "bob")
    create_organization(hub, "acme", ada, bob="read")
    create_user(hub, "stranger")
    with api(hub, create_token(hub, ada)) as client:
        create_repo(client, "acme/open")
        create_repo(client, "acme/closed", private=True)
        create_repo(client, "acme/words", "dataset", private=True)
    return "acme"


@pytest.mark.one_engine
@pytest.mark.parametrize(("who", "models", "datasets"), [("bob", 2, 1), ("stranger", 1, 0), (None, 1, 0)])
def test_profiles_and_overviews_count_visible_repos(
    hub: RunningHub, acme: str, who: str | None, models: int, datasets: int
) -> None:
    from hubgate.server.accounts import store

    user = hub.call(lambda opened: store.user_by_name(opened.db, who)) if who else None
    with browser_of(hub, user) as browser, api(hub, create_token(hub, user) if user else None) as client:
        profile = main_of(browser.get("/acme").text)
        assert f"Models {models}" in profile
        assert f"Datasets {datasets}" in profile
        assert ("closed" in profile) is (models == 2)
        assert ("words" in main_of(browser.get("/acme?show=datasets").text)) is (datasets == 1)
        assert "New repo" not in profile
        overview = client.get("/api/organizations/acme/overview").json()
        assert (overview["numModels"], overview["numDatasets"], overview["numSpaces"]) == (models, datasets, 0)


def test_users_overview_and_profile_count_repos(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    with api(hub, create_token(hub, ada)) as client, hub.client() as visitor, browser_of(hub, ada) as browser:
        assert "No repos yet." in visitor.get("/ada").text
        create_repo(client, "app", "space")
        create_repo(client, "draft", private=True)
        own, other = (one.get("/api/users/ada/overview").json() for one in (client, visitor))
        assert (own["numModels"], own["numSpaces"]) == (1, 1)
        assert (other["numModels"], other["numSpaces"]) == (0, 1)
        shown = main_of(visitor.get("/ada").text)
        assert 'href="/spaces/ada/app"' in shown, "the first type there is something of"
        assert "draft" not in shown
        assert 'href="/new?owner=ada"' in main_of(browser.get("/ada").text)


@pytest.mark.one_engine
def test_home_page_shows_recent_repos(hub: RunningHub) -> None:
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    with api(hub, create_token(hub, ada)) as client:
        create_repo(client, "tiny")
        create_repo(client, "draft", private=True)
    with hub.client() as visitor, browser_of(hub, ada) as owner, browser_of(hub, bob) as other:
        out, own, others = (main_of(client.get("/").text) for client in (visitor, owner, other))
    assert 'href="/ada/tiny"' in out
    assert "draft" not in out
    assert 'href="/ada/tiny"' in own
    assert 'href="/ada/draft"' in own
    assert "/ada/" not in others
    assert 'href="/new"' in own
