"""Searches over HTTP: what is found, in which order, and that each change is found at once."""

from typing import Any

import httpx
import pytest
from tests.bed.people import api, browser_of, create_organization, create_token, create_user, submit
from tests.bed.repos import create_commit, create_repo
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts import operator_actions
from hubgate.server.hub.search.compaction import MAX_PARTS, Compaction
from hubgate.server.hub.search.indexing import SearchIndexer
from hubgate.server.resources import Hub


def search(client: httpx.Client, text: str, **query: Any) -> dict[str, list[dict[str, Any]]]:
    answer = client.get("/api/quicksearch", params={"q": text, **query})
    assert answer.status_code == 200, answer.text
    found: dict[str, list[dict[str, Any]]] = answer.json()
    return found


def models(client: httpx.Client, text: str) -> list[str]:
    return [repo["id"] for repo in search(client, text)["models"]]


def card(client: httpx.Client, repo: str, text: str) -> None:
    create_commit(client, repo, {"README.md": text.encode()})


def test_repos_are_found_by_name_owner_tag_and_card(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    create_organization(hub, "acme", ada)
    with api(hub, create_token(hub, ada)) as client:
        for name in ("acme/DistilBERT-base", "ada/bert", "ada/whisper", "acme/resnet50"):
            create_repo(client, name)
        card(client, "ada/whisper", "---\ntags: [speech-recognition]\nlicense: mit\n---\n# Café\nBetter than BERT\n")
        # The whole name, the beginning of a word in a name, and the card.
        assert models(client, "bert") == ["ada/bert", "acme/DistilBERT-base", "ada/whisper"]
        assert models(client, "ada/bert") == ["ada/bert", "ada/whisper"]
        assert models(client, "acme bert") == models(client, "acm/ber") == ["acme/DistilBERT-base"]
        assert models(client, "acme") == ["acme/resnet50", "acme/DistilBERT-base"]
        assert models(client, "speech-recognition") == models(client, "recognition CAFE") == ["ada/whisper"]
        assert models(client, "stilb") == ["acme/DistilBERT-base"]
        assert models(client, "net 50") == ["acme/resnet50"]
        assert models(client, "acme/") == ["acme/resnet50", "acme/DistilBERT-base"]
        # The name begins so, before the newer repo of which only the card matches.
        create_repo(client, "acme/whisper-large")
        card(client, "acme/resnet50", "Not for whisper")
        create_repo(client, "acme/photos")
        card(client, "acme/photos", "---\ntags: [whisper]\n---\n")
        assert models(client, "acme/whisper") == ["acme/whisper-large", "acme/photos", "acme/resnet50"]
        # No owner has the name before the slash.
        assert models(client, "recognition/speech") == ["ada/whisper"]
        assert [each["name"] for each in search(client, "acme/")["orgs"]] == ["acme"]
        for text in ("", "...", "nowhere", "bert nowhere", '"', "'", "a" * 5000, "x AND y", "& | !", "\u202e"):
            assert models(client, text) == [], text
        assert models(client, "~bert* :*") == models(client, "bert")
        assert client.get("/api/quicksearch", params={"q": "x", "type": "cat"}).status_code == 400
        assert list(search(client, "bert", type=["model", "user"])) == ["models", "users"]


def test_every_change_is_found_at_once(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    create_organization(hub, "acme", ada)
    with api(hub, create_token(hub, ada)) as client, browser_of(hub, ada) as browser:
        create_repo(client, "first")
        card(client, "ada/first", "giraffe")
        assert models(client, "giraffe") == ["ada/first"]
        card(client, "ada/first", "antelope")
        assert (models(client, "giraffe"), models(client, "antelope")) == ([], ["ada/first"])
        move = {"fromRepo": "ada/first", "toRepo": "acme/second", "type": "model"}
        assert client.post("/api/repos/move", json=move).status_code == 200
        assert (models(client, "first"), models(client, "acme antelope")) == ([], ["acme/second"])
        discussions = "/api/models/acme/second/discussions"
        assert client.post(discussions, json={"title": "Broken tensors", "description": "x"}).status_code == 200
        assert [each["num"] for each in search(client, "tensors")["discussions"]] == [1]
        assert client.post(f"{discussions}/1/title", json={"title": "Fixed weights"}).status_code == 200
        assert (search(client, "tensors")["discussions"], len(search(client, "weights")["discussions"])) == ([], 1)
        slug = client.post("/api/collections", json={"title": "Savanna", "namespace": "ada"}).json()["slug"]
        assert client.patch(f"/api/collections/{slug}", json={"description": "Lions"}).status_code == 200
        assert [each["slug"] for each in search(client, "savanna lions")["collections"]] == [slug]
        # A renamed owner is found under the new name, and so are the owner's repos.
        page = "/organizations/acme/settings/profile"
        assert submit(browser, page, "/organizations/acme/settings/rename", name="Zoo").status_code == 303
        assert models(client, "zoo antelope") == ["Zoo/second"]
        assert [each["name"] for each in search(client, "zoo")["orgs"]] == ["Zoo"]
        assert search(client, "acme")["orgs"] == []
        profile = {"fullname": "Countess Lovelace"}
        assert submit(browser, "/settings/profile", "/settings/profile", **profile).status_code == 303
        assert [each["fullname"] for each in search(client, "countess")["users"]] == ["Countess Lovelace"]
        # Deletion.
        assert client.delete(f"/api/collections/{slug}").status_code == 200
        assert client.request("DELETE", f"{discussions.replace('acme', 'Zoo')}/1").status_code == 200
        assert search(client, "savanna")["collections"] == search(client, "weights")["discussions"] == []
        body = {"name": "second", "organization": "Zoo", "type": "model"}
        assert client.request("DELETE", "/api/repos/delete", json=body).status_code == 200
        assert models(client, "antelope") == []


def test_lists_are_the_same_with_and_without_the_index(hub: RunningHub) -> None:
    """The index narrows a list only once it is complete."""
    ada = create_user(hub, "ada")
    create_organization(hub, "labs-9", ada)
    queries: tuple[dict[str, Any], ...] = (
        *({"search": text} for text in ("ert", "bert-b", "bert b", "LABS-9/", "bs-9/bert", "er", "-", "v2.1", "ada")),
        {"search": ["labs", "bert"]},
        {"search": "bert", "filter": "en"},
        {"filter": ["en", "license:mit"]},
        {"filter": "license:mit", "author": "labs-9"},
        {"search": "bert", "sort": "createdAt", "direction": "1", "limit": 2},
    )
    with api(hub, create_token(hub, ada)) as client:
        for number, name in enumerate(("bert-base", "bert.b", "RoBERTa_v2.1", "bart", "b-e-r-t")):
            repo = f"{('ada', 'labs-9')[number % 2]}/{name}"
            create_repo(client, repo, private=number == 0)
            card(client, repo, f"---\nlicense: {'mit' if number < 3 else 'apache-2.0'}\nlanguage: en\n---\nbert\n")
        lists = [client.get("/api/models", params=query) for query in queries]
        hub.call(forget_completion)
        for query, answer in zip(queries, lists, strict=True):
            assert client.get("/api/models", params=query).json() == answer.json(), query
        assert [len(answer.json()) for answer in lists] == [3, 1, 0, 2, 1, 3, 4, 1, 3, 1, 3, 3, 1, 2]
        assert "still being built" in client.get("/search?q=bert").text


async def forget_completion(opened: Hub) -> None:
    await opened.db.write(lambda tx: tx.exec("DELETE FROM milestones WHERE name = 'search index'"))


def test_what_was_stored_before_the_index_is_added_in_the_background(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    create_organization(hub, "acme", ada)

    async def forget(opened: Hub) -> None:
        await forget_completion(opened)
        await opened.db.write(lambda tx: tx.exec("DELETE FROM search_documents"))

    async def index(opened: Hub) -> None:
        indexer = SearchIndexer(opened.repos)
        while await indexer.step():
            pass

    with api(hub, create_token(hub, ada)) as client:
        create_repo(client, "acme/secret", private=True)
        card(client, "acme/secret", "---\ntags: [plains]\n---\ngiraffe")
        client.post("/api/models/acme/secret/discussions", json={"title": "On giraffes", "description": "x"})
        client.post("/api/collections", json={"title": "Giraffes", "namespace": "acme"})
        before = {text: search(client, text) for text in ("giraffe", "giraffes", "plains", "acme", "ada")}
        hub.call(forget)
        assert search(client, "giraffe") == {name: [] for name in before["giraffe"]}
        assert len(client.get("/api/models?search=secret").json()) == 1
        hub.call(index)
        assert {text: search(client, text) for text in before} == before
        assert "still being built" not in client.get("/search?q=giraffe").text
        with api(hub) as anyone:
            assert search(anyone, "giraffe")["models"] == search(anyone, "giraffes")["discussions"] == []


def test_index_is_completed_after_its_process_was_killed(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")

    async def start(opened: Hub) -> None:
        """Add users and organizations; the process ends before repos are added."""
        await forget_completion(opened)
        await opened.db.write(lambda tx: tx.exec("DELETE FROM search_documents"))
        indexer = SearchIndexer(opened.repos)
        for _ in range(2):
            assert await indexer.step()

    async def finish(opened: Hub) -> None:
        indexer = SearchIndexer(opened.repos)
        while await indexer.step():
            pass

    with api(hub, create_token(hub, ada)) as client:
        for name in ("giraffe-one", "giraffe-two"):
            create_repo(client, name)
        hub.call(start)
        assert [each["name"] for each in search(client, "ada")["users"]] == ["ada"]
        assert models(client, "giraffe") == []
        assert "still being built" in client.get("/search?q=giraffe").text
        assert len(client.get("/api/models?search=giraffe").json()) == 2
        # A change in between is found at once, and is not overwritten.
        card(client, "ada/giraffe-two", "antelope")
        assert models(client, "antelope") == ["ada/giraffe-two"]
        hub.call(finish)
        assert set(models(client, "giraffe")) == {"ada/giraffe-one", "ada/giraffe-two"}
        assert models(client, "antelope") == ["ada/giraffe-two"]
        assert "still being built" not in client.get("/search?q=giraffe").text


def test_parts_of_the_index_are_merged(hub: RunningHub) -> None:
    async def parts(opened: Hub) -> int:
        return await opened.db.read_long(opened.db.text_index.parts)

    async def compact(opened: Hub) -> None:
        compaction = Compaction(opened.db)
        while await compaction.step():
            pass

    with api(hub, create_token(hub, create_user(hub, "ada"))) as client:
        for number in range(12):
            create_repo(client, f"bert-{number}")
        before = models(client, "bert")
        # Each added one; PostgreSQL has no parts.
        assert hub.call(parts) > MAX_PARTS or not hub.settings.database_url.startswith("sqlite")
        hub.call(compact)
        assert hub.call(parts) <= MAX_PARTS
        assert models(client, "bert") == before
        create_repo(client, "bert-12")
        assert models(client, "bert")[0] == "ada/bert-12"


def test_disabled_users_are_not_found(hub: RunningHub) -> None:
    people = [create_user(hub, f"zoe-{number}") for number in range(7)]
    with api(hub) as client:

        def found() -> set[str]:
            return {each["name"] for each in search(client, "zoe", type="user")["users"]}

        assert len(found()) == 5
        for user in people[2:]:
            hub.call(lambda opened, user=user: operator_actions.disable(opened.accounts, user))
        assert found() == {"zoe-0", "zoe-1"}
        assert "zoe-6" not in client.get("/search?q=zoe&type=accounts").text
        hub.call(lambda opened: operator_actions.enable(opened.accounts, people[6]))
        assert found() == {"zoe-0", "zoe-1", "zoe-6"}


@pytest.mark.one_engine
def test_results_are_shown_by_kind_and_in_pages(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    with api(hub, create_token(hub, ada)) as client, hub.client() as browser:
        for number in range(22):
            create_repo(client, f"bert-{number}")
        everything = browser.get("/search?q=bert").text
        assert 'value="bert"' in everything
        assert everything.count('class="repo-name"') == 5
        assert '<a href="/search?q=bert&amp;type=repos">More repos</a>' in everything
        first = browser.get("/search?q=bert&type=repos").text
        assert first.count('class="repo-name"') == 20
        address = first.partition('<nav class="row" aria-label="Pages of results">')[2].partition('href="')[2]
        second = browser.get(address.partition('"')[0].replace("&amp;", "&")).text
        assert second.count('class="repo-name"') == 2
        assert 'href="/ada/bert-0"' in second
        assert "Nothing matches." in browser.get("/search?q=nowhere").text
        assert "Nothing matches." in browser.get("/search?q=bert&type=collections").text
        assert "Find repos by name" in browser.get("/search").text
        assert 'href="/ada"' in browser.get("/search?q=ada&type=accounts").text
        assert browser.get("/search?q=bert&type=repos&cursor=x").status_code == 400
        trick = browser.get("/search", params={"q": "<b>\u202e"}).text
        assert "<b>" not in trick.partition("<main")[2]
        assert "\u202e" not in trick.partition("<main")[2]
