"""Collections on pages: lists, creation, items, settings and deletion, without JavaScript."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import unescape

import httpx
import pytest
from tests.bed.collections import fill_collections
from tests.bed.people import api, browser_of, create_organization, create_token, create_user, post, submit
from tests.bed.repos import create_repo
from tests.bed.running_hub import RunningHub

from hubgate.server.hub.collections.model import MAX_COLLECTIONS, MAX_ITEMS

pytestmark = pytest.mark.one_engine


@dataclass
class Scene:
    hub: RunningHub
    ada: httpx.Client
    bob: httpx.Client
    visitor: httpx.Client


@pytest.fixture
def scene(hub: RunningHub) -> Iterator[Scene]:
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    create_organization(hub, "acme", ada, bob="read")
    with api(hub, create_token(hub, ada)) as client:
        for name in ("one", "two"):
            create_repo(client, name)
        create_repo(client, "secret", "dataset", private=True)
    with browser_of(hub, ada) as own, browser_of(hub, bob) as other, browser_of(hub) as visitor:
        yield Scene(hub, own, other, visitor)


def created(client: httpx.Client, title: str = "Small models", **fields: str) -> str:
    response = submit(client, "/collections/new", "/collections/new", title=title, **fields)
    assert response.status_code == 303, response.text
    return str(response.headers["location"])


def items(page: str) -> list[str]:
    return re.findall(r'<a class="repo-name" href="([^"]+)"', page)


def test_collection_is_created_filled_and_shown(scene: Scene) -> None:
    at = created(scene.ada, owner="acme", description="For <laptops>", theme="green", visibility="public")
    assert re.fullmatch(r"/collections/acme/small-models-[0-9a-f]{24}", at)
    page = scene.ada.get(at).text
    assert "Created Small models." in page
    assert "For &lt;laptops&gt;" in page
    for kind, name in (("model", "ada/one"), ("model", f"{scene.hub.url}/ada/two"), ("dataset", "ada/secret")):
        assert submit(scene.ada, at, f"{at}/items", type=kind, id=name, note="A note").status_code == 303
    assert items(scene.ada.get(at).text) == ["/ada/one", "/ada/two", "/datasets/ada/secret"]
    for other in (scene.bob, scene.visitor):
        shown = other.get(at).text
        assert items(shown) == ["/ada/one", "/ada/two"]
        assert "secret" not in shown
        assert "Add an item" not in shown


def test_items_are_moved_annotated_and_removed(scene: Scene) -> None:
    at = created(scene.ada)
    for name in ("ada/one", "ada/two"):
        submit(scene.ada, at, f"{at}/items", type="model", id=name)
    page = scene.ada.get(at).text
    first, second = re.findall(r'action="([^"]+/items/[0-9a-f]{24})/note"', page)
    assert f'action="{second}/move"' in page
    assert submit(scene.ada, at, f"{second}/move").status_code == 303
    assert items(scene.ada.get(at).text) == ["/ada/two", "/ada/one"]
    submit(scene.ada, at, f"{first}/note", note="Try <b>this</b>\nfirst")
    assert "Try &lt;b&gt;this&lt;/b&gt;\nfirst" in scene.visitor.get(at).text
    assert submit(scene.ada, at, f"{second}/remove").status_code == 303
    assert items(scene.visitor.get(at).text) == ["/ada/one"]
    assert post(scene.ada, f"{first}/move", position="x").status_code == 422
    assert post(scene.bob, f"{first}/remove").status_code == 403


def test_invalid_forms_are_shown_with_their_values(scene: Scene) -> None:
    at = created(scene.ada)
    missing = submit(scene.ada, at, f"{at}/items", type="model", id="ada/absent", note="Kept")
    assert (missing.status_code, 'value="Kept"' in missing.text) == (422, True)
    assert "There is no such model, or you may not see it." in missing.text
    his = created(scene.bob)
    hidden = submit(scene.bob, his, f"{his}/items", type="dataset", id="ada/secret")
    assert "There is no such dataset, or you may not see it." in hidden.text
    submit(scene.ada, at, f"{at}/items", type="model", id="ada/one")
    again = submit(scene.ada, at, f"{at}/items", type="model", id="ada/one")
    assert "This item is already in the collection." in again.text
    taken = submit(scene.ada, "/collections/new", "/collections/new", title="SMALL models", description="Kept too")
    assert (taken.status_code, "Kept too" in taken.text) == (422, True)
    assert "ada already has a collection with this title." in taken.text
    empty = submit(scene.ada, "/collections/new", "/collections/new", title="\u200b", description="x" * 151)
    assert empty.status_code == 422


def errors_by_field(response: httpx.Response) -> dict[str, str]:
    found = re.findall(
        r'class="field-error" id="([a-z]+)-error"><span aria-hidden="true">✕</span>([^<]+)<', response.text
    )
    return {field: unescape(message) for field, message in found}


@pytest.mark.parametrize(
    ("fields", "field", "message"),
    [
        ({"title": " "}, "title", "A title must have 1 to 100 characters."),
        ({"description": "x" * 151}, "description", "A description may have at most 150 characters."),
        ({"theme": "black"}, "theme", "theme must be one of orange, blue, green, purple, pink, indigo."),
        # The name of the owner in the message is that of another field.
        ({"title": "TAKEN", "owner": "description"}, "title", "description already has a collection with this title."),
    ],
)
def test_error_is_shown_at_its_field(scene: Scene, fields: dict[str, str], field: str, message: str) -> None:
    assert submit(scene.ada, "/organizations/new", name="description", fullname="").status_code == 303
    created(scene.ada, owner="description", title="Taken")
    at = created(scene.ada, owner="description", title="Other")
    values = {"title": "New", "description": "", "theme": "blue", "visibility": "public", **fields}
    for page in ("/collections/new", f"{at}/settings"):
        rejected = submit(scene.ada, page, page, **values)
        assert (rejected.status_code, errors_by_field(rejected)) == (422, {field: message})


def test_limits_are_shown_at_the_owner_and_at_the_item(hub: RunningHub) -> None:
    eve = create_user(hub, "eve")
    first = fill_collections(hub, eve, MAX_COLLECTIONS, MAX_ITEMS, filled=1)[0]
    with api(hub, create_token(hub, eve)) as client:
        create_repo(client, "one")
    at = f"/collections/eve/number-0-{first}"
    item = {"type": "model", "id": "eve/one"}
    with browser_of(hub, eve) as browser:
        full = submit(browser, at, f"{at}/items", **item, note="Unsaved")
        long = submit(browser, at, f"{at}/items", **item, note="x" * 501)
        another = submit(browser, "/collections/new", "/collections/new", owner="eve", title="Another")
    assert full.status_code == 422
    assert errors_by_field(full) == {"id": "The collection has 1,000 items, the most that are allowed."}
    assert 'value="Unsaved"' in full.text
    assert errors_by_field(long) == {"note": "A note may have at most 500 characters."}
    assert another.status_code == 422
    assert errors_by_field(another) == {"owner": "eve has 1,000 collections, the most that are allowed."}


def test_private_collection_asks_visitors_to_sign_in_like_a_missing_one(scene: Scene) -> None:
    at = created(scene.ada, visibility="private")
    absent = at[:-24] + "0" * 24
    for path in (at, absent, f"{at}/settings"):
        assert scene.bob.get(path).status_code == 404
        assert scene.visitor.get(path).headers["location"].startswith("/login?next=")
    assert "Small models" not in scene.visitor.get("/collections").text
    assert "Small models" not in scene.bob.get("/ada").text
    assert "Small models" in scene.ada.get("/ada").text


def test_settings_are_changed_and_old_addresses_redirect(scene: Scene) -> None:
    at = created(scene.ada)
    fields = {"title": "Renamed", "description": "New", "theme": "pink", "visibility": "public"}
    saved = submit(scene.ada, f"{at}/settings", **fields)
    assert saved.status_code == 303
    new = saved.headers["location"].removesuffix("/settings")
    assert new == at.replace("small-models", "renamed")
    redirect = scene.visitor.get(at)
    assert (redirect.status_code, redirect.headers["location"]) == (307, new)
    assert "Renamed" in scene.visitor.get(new).text
    rejected = submit(scene.ada, f"{new}/settings", **{**fields, "title": " "})
    assert "A title must have 1 to 100 characters." in rejected.text
    assert scene.bob.get(f"{new}/settings").status_code == 403


def test_collection_is_deleted_after_confirmation(scene: Scene) -> None:
    at = created(scene.ada)
    assert "The repos in it stay." in scene.ada.get(f"{at}/settings/delete").text
    deleted = submit(scene.ada, f"{at}/settings/delete")
    assert deleted.headers["location"] == "/ada"
    assert scene.ada.get(at).status_code == 404


def test_lists_are_searched_and_limited_to_an_owner(scene: Scene) -> None:
    created(scene.ada)
    created(scene.bob)
    assert scene.visitor.get("/collections").text.count('class="repo-name"') == 2
    assert scene.visitor.get("/collections?owner=BOB").text.count('class="repo-name"') == 1
    assert "Nothing matches." in scene.visitor.get("/collections?owner=nobody").text
    assert scene.visitor.get("/collections?search=small").text.count('class="repo-name"') == 2
    assert "Nothing matches." in scene.visitor.get("/collections?search=large").text
    profile = scene.visitor.get("/bob").text
    assert "Small models" in profile
    assert "New collection" not in profile


def test_items_are_paged(scene: Scene) -> None:
    at = created(scene.ada)
    with api(scene.hub, create_token(scene.hub, create_user(scene.hub, "wim"))) as client:
        for number in range(51):
            create_repo(client, f"r{number}")
    for number in range(51):
        submit(scene.ada, at, f"{at}/items", type="model", id=f"wim/r{number}")
    first, second = scene.visitor.get(at).text, scene.visitor.get(f"{at}?page=2").text
    assert (len(items(first)), items(second)) == (50, ["/wim/r50"])
    assert f'href="{at}?page=2"' in first


def test_title_does_not_reverse_the_text_of_messages(scene: Scene) -> None:
    """Another member of the organization may have chosen the title."""
    sent = submit(scene.ada, "/collections/new", "/collections/new", owner="acme", title="Small\u202emodels")
    at = sent.headers["location"]
    page = scene.ada.get(at).text
    assert ("Created Smallmodels." in page, "\u202e" in page) == (True, False)
    deleted = submit(scene.ada, f"{at}/settings/delete")
    page = scene.ada.get(deleted.headers["location"]).text
    assert ("Deleted Smallmodels." in page, "\u202e" in page) == (True, False)
