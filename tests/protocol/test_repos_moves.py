"""Creating, moving and deleting: names that are taken, were taken, and redirect."""

from typing import Any

import httpx
import pytest
from tests.bed.concurrency import run_concurrently
from tests.bed.people import api, create_organization, create_token, create_user
from tests.bed.repos import create_commit, create_repo, send_commit
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts.organizations import settings
from hubgate.server.audit.model import SYSTEM


def move(client: httpx.Client, old: str, new: str, **more: Any) -> httpx.Response:
    return client.post("/api/repos/move", json={"fromRepo": old, "toRepo": new, **more})


def delete(client: httpx.Client, name: str, organization: str | None = None, **more: Any) -> httpx.Response:
    return client.request("DELETE", "/api/repos/delete", json={"name": name, "organization": organization, **more})


def redirect_target(client: httpx.Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 307, (address, answer.status_code)
    location: str = answer.headers["location"]
    return location


@pytest.mark.one_engine
def test_chain_of_moves_redirects_to_the_current_name(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    create_organization(hub, "acme", ada)
    with api(hub, create_token(hub, ada)) as client, api(hub) as anyone:
        create_repo(client, "one")
        create_commit(client, "ada/one", {"d/f": b"x"})
        for old, new in (("ada/one", "ada/two"), ("ada/two", "acme/three"), ("acme/three", "acme/four")):
            assert move(client, old, new, type="model").json()["url"] == f"{hub.url}/{new}"
        for old in ("ada/one", "ada/two", "acme/three", "ADA/One"):
            assert redirect_target(anyone, f"/api/models/{old}") == "/api/models/acme/four"
            rest = "resolve/main/d%2Ff?download=true&x=%20"
            assert redirect_target(anyone, f"/{old}/{rest}") == f"/acme/four/{rest}"
            assert (
                redirect_target(anyone, f"/api/models/{old}/tree/refs%2Fheads%2Fmain/d")
                == "/api/models/acme/four/tree/refs%2Fheads%2Fmain/d"
            )
            assert redirect_target(anyone, f"/{old}.git/info/refs?service=git-upload-pack").startswith(
                "/acme/four.git/info/refs"
            )
            assert anyone.head(f"/{old}/resolve/main/d/f").headers["location"] == "/acme/four/resolve/main/d/f"
            # Changes are executed without a redirect: no client should resend gigabytes.
            assert (
                send_commit(client, old, {"f": old.encode()})
                .json()["commitUrl"]
                .startswith(f"{hub.url}/acme/four/commit/")
            )
            taken = client.post(
                "/api/repos/create", json={"name": old.split("/")[1], "organization": old.split("/")[0]}
            )
            assert taken.status_code == 409
        assert move(client, "ada/two", "ada/one").status_code == 200, "back to the first name, asked by the second"
        assert anyone.get("/api/models/ada/one").json()["id"] == "ada/one"
        assert redirect_target(anyone, "/api/models/acme/four") == "/api/models/ada/one"
        # A former name cannot be used to delete: the caller may be a script from before the move.
        gone = delete(client, "four", "acme")
        assert (gone.status_code, gone.headers["x-error-code"]) == (404, "RepoNotFound")
        assert "ada/one" in gone.json()["error"]
        assert delete(client, "one").status_code == 200
        for free in ("ada/two", "acme/three", "acme/four"):
            assert anyone.get(f"/api/models/{free}").status_code == 401
            create_repo(client, free)


@pytest.mark.one_engine
def test_deleting_by_an_owners_old_name_is_rejected(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    acme = create_organization(hub, "acme", ada)
    with api(hub, create_token(hub, ada)) as client:
        create_repo(client, "acme/keep")
        hub.call(lambda opened: settings.rename(opened.accounts, acme, "Acme2", SYSTEM))
        for refused in (delete(client, "keep", "acme"), delete(client, "acme/keep"), delete(client, "keep", "nobody")):
            assert (refused.status_code, refused.headers["x-error-code"]) == (404, "RepoNotFound")
        assert client.get("/api/models/acme2/keep").status_code == 200
        assert delete(client, "KEEP", "acme2").status_code == 200
        assert client.get("/api/models/acme2/keep").status_code == 404


@pytest.mark.one_engine
def test_invalid_moves_are_rejected(hub: RunningHub) -> None:
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    create_organization(hub, "acme", ada, bob="read")
    with api(hub, create_token(hub, ada)) as owner, api(hub, create_token(hub, bob)) as other, api(hub) as anyone:
        for name in ("one", "two"):
            create_repo(owner, name)
        create_repo(owner, "hidden", private=True)
        create_repo(owner, "acme/theirs", private=True)
        create_repo(other, "mine")
        events = len(owner.get("/api/models/ada/one/events").json())
        taken = move(owner, "ada/one", "ada/Two", type="model")
        assert (taken.status_code, taken.json()["error"]) == (409, "A model repository called ada/Two already exists")
        assert move(owner, "ada/one", "ada/one").status_code == 409
        for new in ("bob/one", "none/one"):
            assert move(owner, "ada/one", new).status_code == 403, new
        for new in ("ada/-x", "ada/a..b", "ada/x.git", "ada/x y", "one", "/one", "ada/", "", "a/b/c"):
            assert move(owner, "ada/one", new).status_code in (403, 422), new
        assert move(owner, "ada/none", "ada/x").status_code == 404
        assert move(owner, "ada/one", "ada/x", type="dataset").status_code == 404
        assert move(owner, "ada/one", "ada/x", type="kernel").status_code == 422
        assert move(other, "ada/one", "bob/one").status_code == 403
        assert move(other, "ada/hidden", "bob/x").status_code == 404
        assert move(other, "acme/theirs", "bob/x").status_code == 403
        assert move(other, "bob/mine", "acme/mine").status_code == 403, "the role read makes no repos"
        assert move(anyone, "ada/one", "ada/x").status_code == 401
        assert len(owner.get("/api/models/ada/one/events").json()) == events
        # To another case of its name; other types have separate names.
        assert move(owner, "ada/one", "ada/ONE").status_code == 200
        assert owner.get("/api/models/ada/one").json()["id"] == "ada/ONE"
        create_repo(owner, "one", "dataset")


@pytest.mark.one_engine
def test_move_of_a_private_repo_is_invisible_to_others(hub: RunningHub) -> None:
    """Neither name reveals that a repo exists or existed."""
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    with api(hub, create_token(hub, ada)) as owner, api(hub, create_token(hub, bob)) as other:
        create_repo(owner, "one", private=True)
        assert move(owner, "ada/one", "ada/two").status_code == 200
        assert redirect_target(owner, "/api/models/ada/one") == "/api/models/ada/two"
        absent = other.get("/api/models/ada/none")
        for name in ("one", "two"):
            hidden = other.get(f"/api/models/ada/{name}")
            assert (hidden.status_code, hidden.json()) == (404, absent.json())
            assert "location" not in hidden.headers


@pytest.mark.one_engine
def test_creating_and_deleting_validate_names_and_permissions(hub: RunningHub) -> None:
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    create_organization(hub, "acme", ada)
    with api(hub, create_token(hub, ada)) as owner, api(hub, create_token(hub, bob)) as other, api(hub) as anyone:

        def create(client: httpx.Client = owner, **asked: Any) -> httpx.Response:
            return client.post("/api/repos/create", json=asked)

        assert create(name="own", organization="ada").json()["name"] == "ada/own", "one's own name is no organization"
        assert create(name="ada/full").json()["name"] == "ada/full"
        assert create(name="acme/full", organization="acme").json()["name"] == "acme/full"
        assert create(name="acme/x", organization="ada").status_code == 422
        assert create(name="app", type="space", sdk="static", visibility="protected").status_code == 200
        assert anyone.get("/api/spaces/ada/app").status_code == 401
        assert create(name="x", type="model", visibility="protected").status_code == 422
        assert create(name="x", private=True, visibility="public").status_code == 422
        assert create(name="app2", type="space").status_code == 400
        for bad in (
            {},
            {"name": 1},
            {"name": "x", "type": "kernel"},
            {"name": "x", "license": "a\nb"},
            {"name": "x\0"},
        ):
            assert create(**bad).status_code == 422, bad
        for namespace in ("acme", "none", "ada"):
            assert create(other, name="x", organization=namespace).status_code == 403
            assert create(anyone, name="x", organization=namespace).status_code == 401
        assert create(anyone).status_code == 401
        with api(hub, create_token(hub, ada, "read")) as reader:
            assert create(reader, name="x").status_code == 403
            assert delete(reader, "own").status_code == 403
        assert delete(owner, "own", type="dataset").status_code == 404, "another type is another repo"
        assert delete(other, "own", "ada").status_code == 403
        assert delete(anyone, "own", "ada").status_code == 401
        assert delete(anyone, "none", "none").status_code == 401
        for missing in (delete(owner, "none"), delete(owner, "x", "none"), delete(other, "app", "ada", type="space")):
            assert (missing.status_code, missing.headers["x-error-code"]) == (404, "RepoNotFound")
            assert missing.headers["x-request-id"]
        assert delete(owner, "own", "ada", type="model").status_code == 200
        assert delete(owner, "ada/full").status_code == 200
        assert delete(owner, "own").status_code == 404


@pytest.mark.parametrize("count", [8])
def test_concurrent_creations_of_one_name_create_one_repo(hub: RunningHub, count: int) -> None:
    ada = create_user(hub, "ada")
    with api(hub, create_token(hub, ada)) as client:
        answers = run_concurrently([lambda: client.post("/api/repos/create", json={"name": "x"}) for _ in range(count)])
        assert sorted(answer.status_code for answer in answers) == [200, *[409] * (count - 1)]
        assert all(answer.json()["url"] == f"{hub.url}/ada/x" for answer in answers)
        for number in range(count):
            create_repo(client, f"m{number}")
        moves = run_concurrently([_moving(client, number) for number in range(count)])
        assert sorted(answer.status_code for answer in moves) == [200, *[409] * (count - 1)]
        deletions = run_concurrently([lambda: delete(client, "x") for _ in range(count)])
        assert sorted(answer.status_code for answer in deletions) == [200, *[404] * (count - 1)]
        folders = list((hub.settings.data_dir / "repos").glob("??/*"))
        assert len(folders) == count, "what lost a race left nothing behind"


def _moving(client: httpx.Client, number: int) -> Any:
    return lambda: move(client, f"ada/m{number}", "ada/target")
