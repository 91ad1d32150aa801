"""Creating repos and changing their settings by forms: roles, CSRF, and what an invalid form retains."""

import httpx
import pytest
from tests.bed.people import api, browser_of, create_organization, create_token, create_user, post, submit
from tests.bed.repos import create_commit, create_repo
from tests.bed.running_hub import RunningHub

pytestmark = pytest.mark.one_engine

NEW = {"name": "tiny", "license": "mit", "visibility": "private"}


def flash_after(client: httpx.Client, response: httpx.Response) -> str:
    assert response.status_code == 303, response.text
    return client.get(response.headers["location"]).text


@pytest.mark.parametrize(
    ("page", "more", "address"),
    [
        ("/new", {}, "/ada/tiny"),
        ("/new-dataset", {}, "/datasets/ada/tiny"),
        ("/new-space", {"sdk": "gradio"}, "/spaces/ada/tiny"),
    ],
)
def test_repo_is_created(hub: RunningHub, page: str, more: dict[str, str], address: str) -> None:
    with browser_of(hub, create_user(hub, "ada")) as client, hub.client() as visitor:
        made = submit(client, page, owner="ada", **NEW, **more)
        assert made.headers["location"] == address
        shown = flash_after(client, made)
        assert "Created ada/tiny." in shown
        assert "Private" in shown
        assert ("Built with gradio" in shown) is ("sdk" in more)
        assert "<dd><bdi>mit</bdi></dd>" in shown
        assert visitor.get(address).status_code == 404


def test_invalid_form_is_rejected(hub: RunningHub) -> None:
    with browser_of(hub, create_user(hub, "ada")) as client:
        assert submit(client, "/new", **NEW).status_code == 303
        taken = submit(client, "/new", **NEW)
        assert taken.status_code == 422
        assert "ada/tiny is taken." in taken.text
        assert 'value="tiny"' in taken.text
        assert '<option value="mit" selected>' in taken.text
        for bad in ("", "a--b", ".hidden", "x.git", "a b", "a" * 97, "<script>"):
            answer = submit(client, "/new", **{**NEW, "name": bad})
            assert answer.status_code == 422
            assert "<script>a" not in answer.text
        assert submit(client, "/new", **{**NEW, "name": "y", "license": "made-up"}).status_code == 422
        assert submit(client, "/new-space", **NEW, sdk="made-up").status_code == 422


def test_form_offers_owners_that_the_role_allows(hub: RunningHub) -> None:
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    create_organization(hub, "acme", ada, bob="contributor")
    create_organization(hub, "readers", ada, bob="read")
    with browser_of(hub, bob) as client:
        page = client.get("/new?owner=acme").text
        assert '<option value="acme" selected>' in page
        assert '<option value="bob">' in page
        assert "readers" not in page
        assert submit(client, "/new", owner="acme", **NEW).headers["location"] == "/acme/tiny"
        assert submit(client, "/new", owner="readers", **NEW).status_code == 403
        assert submit(client, "/new", owner="ada", **NEW).status_code == 403
        assert submit(client, "/new", owner="nobody", **NEW).status_code == 403
        # Contributors may change repos that they created.
        assert client.get("/acme/tiny/settings").status_code == 200


def test_visitors_are_sent_to_sign_in(hub: RunningHub) -> None:
    with hub.client() as visitor:
        assert visitor.get("/new").headers["location"] == "/login?next=%2Fnew"
        assert post(visitor, "/new", **NEW).status_code == 401


@pytest.fixture
def acmes(hub: RunningHub) -> str:
    """A public repo of an organization with one member of each role."""
    people = {name: create_user(hub, name) for name in ("ada", "writer", "contributor", "reader", "stranger")}
    roles = {"writer": "write", "contributor": "contributor", "reader": "read"}
    create_organization(hub, "acme", people["ada"], **roles)
    with api(hub, create_token(hub, people["ada"])) as client:
        create_repo(client, "acme/tiny")
        create_commit(client, "acme/tiny", {"a.txt": b"a"})
    return "/acme/tiny"


FORMS = {
    "/settings/visibility": {"visibility": "private"},
    "/settings/gate": {"gated": "auto"},
    "/settings/discussions": {},
    "/settings/move": {"owner": "acme", "name": "other"},
    "/settings/delete": {"name": "acme/tiny"},
}


@pytest.mark.parametrize("who", ["contributor", "reader", "stranger", None])
def test_settings_are_for_writers(hub: RunningHub, acmes: str, who: str | None) -> None:
    from hubgate.server.accounts import store

    user = hub.call(lambda opened: store.user_by_name(opened.db, who)) if who else None
    with browser_of(hub, user) as client:
        assert "/acme/tiny/settings" not in client.get(acmes).text
        assert client.get(f"{acmes}/settings").status_code == (403 if who else 303)
        for tail, fields in FORMS.items():
            assert post(client, acmes + tail, **fields).status_code == (403 if who else 401), tail
        shown = client.get(acmes).text
        assert "Public" in shown
        assert "Gated" not in shown


def test_writer_may_change_everything(hub: RunningHub, acmes: str) -> None:
    from hubgate.server.accounts import store

    writer = hub.call(lambda opened: store.user_by_name(opened.db, "writer"))
    with browser_of(hub, writer) as client, hub.client() as visitor:
        page = f"{acmes}/settings"
        assert f'href="{page}"' in client.get(acmes).text
        assert "is now private" in flash_after(client, submit(client, page, f"{page}/visibility", visibility="private"))
        assert visitor.get(acmes).status_code == 404
        assert "is now public" in flash_after(client, submit(client, page, f"{page}/visibility", visibility="public"))
        assert visitor.get(acmes).status_code == 200
        gated = flash_after(client, submit(client, page, f"{page}/gate", gated="manual"))
        assert '<option value="manual" selected>' in gated
        assert "Gated" in visitor.get(acmes).text
        assert "is no longer gated" in flash_after(client, submit(client, page, f"{page}/gate", gated=""))
        off = flash_after(client, submit(client, page, f"{page}/discussions"))
        assert "Discussions are now off." in off
        assert "Discussions are now on." in flash_after(
            client, submit(client, page, f"{page}/discussions", discussions="on")
        )
        assert submit(client, page, f"{page}/gate", gated="sometimes").status_code == 422
        assert submit(client, page, f"{page}/visibility", visibility="x").status_code == 422


def test_moved_repo_is_found_by_its_old_name(hub: RunningHub, acmes: str) -> None:
    from hubgate.server.accounts import store

    writer = hub.call(lambda opened: store.user_by_name(opened.db, "writer"))
    with browser_of(hub, writer) as client, hub.client() as visitor:
        page = f"{acmes}/settings"
        assert submit(client, "/new", owner="acme", name="taken", license="").status_code == 303
        taken = submit(client, page, f"{page}/move", owner="acme", name="taken")
        assert taken.status_code == 422
        assert "acme/taken is taken." in taken.text
        assert submit(client, page, f"{page}/move", owner="acme", name="a b").status_code == 422
        assert submit(client, page, f"{page}/move", owner="ada", name="tiny").status_code == 403
        assert submit(client, page, f"{page}/move", owner="nobody", name="tiny").status_code == 403
        same = submit(client, page, f"{page}/move", owner="acme", name="tiny")
        assert "The repo is already named acme/tiny." in flash_after(client, same)
        renamed = submit(client, page, f"{page}/move", owner="acme", name="small")
        assert "Links to acme/tiny redirect here." in flash_after(client, renamed)
        assert visitor.get(acmes).headers["location"] == "/acme/small"
        # A form opened before the move still works.
        assert post(client, f"{page}/visibility", visibility="private").headers["location"] == "/acme/small/settings"
        moved = submit(client, "/acme/small/settings", "/acme/small/settings/move", owner="writer", name="mine")
        assert moved.headers["location"] == "/writer/mine/settings"
        assert "Links to acme/small no longer work." in flash_after(client, moved)
        assert visitor.get(acmes).status_code == 404


def test_deletion_requires_the_name(hub: RunningHub, acmes: str) -> None:
    from hubgate.server.accounts import store

    ada = hub.call(lambda opened: store.user_by_name(opened.db, "ada"))
    with browser_of(hub, ada) as client:
        page = f"{acmes}/settings/delete"
        assert "with its 2 files and 0 discussions. Type" in client.get(page).text
        wrong = submit(client, page, page, name="tiny")
        assert wrong.status_code == 422
        assert "Type acme/tiny, exactly as shown here." in wrong.text
        assert "Deleted acme/tiny." in flash_after(client, submit(client, page, page, name="acme/tiny"))
        assert client.get(acmes).status_code == 404


@pytest.mark.parametrize("tail", FORMS)
def test_forged_form_changes_nothing(hub: RunningHub, acmes: str, tail: str) -> None:
    from hubgate.server.accounts import store

    ada = hub.call(lambda opened: store.user_by_name(opened.db, "ada"))
    with browser_of(hub, ada) as client:
        assert client.post(acmes + tail, data=FORMS[tail]).status_code == 403
        assert client.post("/new", data=NEW).status_code == 403
        shown = client.get(acmes).text
        assert "Public" in shown
        assert client.get("/ada/tiny").status_code == 404
