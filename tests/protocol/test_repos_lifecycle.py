"""Repos from creation to deletion, over the API."""

from typing import Any

import httpx
import pytest
from tests.bed.people import api, create_organization, create_token, create_user
from tests.bed.repos import create_repo
from tests.bed.running_hub import RunningHub

pytestmark = pytest.mark.one_engine

TYPES = ("model", "dataset", "space")


def events(client: httpx.Client, repo: str, repo_type: str = "model") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.get(f"/api/{repo_type}s/{repo}/events").json()
    return found


@pytest.mark.parametrize("repo_type", TYPES)
def test_repo_is_created_read_and_deleted(hub: RunningHub, repo_type: str) -> None:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada, api(hub) as anyone:
        made = create_repo(ada, "tiny", repo_type)
        folder = {"model": "", "dataset": "datasets/", "space": "spaces/"}[repo_type]
        assert made["url"] == f"{hub.settings.base_url}/{folder}ada/tiny"
        assert made["name"] == "ada/tiny"
        found = anyone.get(f"/api/{repo_type}s/ada/tiny").json()
        assert (found["_id"], found["id"], found["author"], found["private"]) == (made["id"], "ada/tiny", "ada", False)
        files = [".gitattributes", "README.md"] if repo_type == "space" else [".gitattributes"]
        assert [file["rfilename"] for file in found["siblings"]] == files
        assert anyone.get(f"/api/{repo_type}s/ada/tiny/revision/{found['sha'][:7]}").json()["sha"] == found["sha"]
        gone = ada.request("DELETE", "/api/repos/delete", json={"name": "tiny", "type": repo_type})
        assert gone.status_code == 200
        missing = ada.get(f"/api/{repo_type}s/ada/tiny")
        assert (missing.status_code, missing.headers["x-error-code"]) == (404, "RepoNotFound")
        create_repo(ada, "tiny", repo_type)


@pytest.mark.parametrize("name", ["tiny", "1.0", "no", "2026-11-16"])
def test_new_space_has_a_readme(hub: RunningHub, name: str) -> None:
    """`SpaceCard.load` and `metadata_update` fail without a README.md."""
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        create_repo(ada, name, "space", sdk="docker", license="mit")
        card = {"title": name, "sdk": "docker", "license": "mit"}
        assert ada.get(f"/api/spaces/ada/{name}").json()["cardData"] == card
        readme = ada.get(f"/spaces/ada/{name}/resolve/main/README.md").text
        checked = ada.post("/api/validate-yaml", json={"content": readme, "repoType": "space"})
        assert (checked.status_code, checked.json()["warnings"]) == (200, [])


def test_taken_name_is_explained(hub: RunningHub) -> None:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        made = create_repo(ada, "Tiny")
        again = ada.post("/api/repos/create", json={"name": "tiny", "organization": "ada"})
        assert (again.status_code, again.json()["url"].lower()) == (409, made["url"].lower())
        create_repo(ada, "tiny", "dataset")


def test_moved_repo_is_found_by_its_old_name(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    create_organization(hub, "acme", ada)
    with api(hub, create_token(hub, ada)) as client:
        create_repo(client, "tiny")
        moved = client.post("/api/repos/move", json={"fromRepo": "ada/tiny", "toRepo": "acme/small", "type": "model"})
        assert moved.status_code == 200
        old = client.get("/api/models/ada/tiny")
        assert (old.status_code, old.headers["location"]) == (307, "/api/models/acme/small")
        assert client.get(old.headers["location"]).json()["id"] == "acme/small"
        taken = client.post("/api/repos/create", json={"name": "tiny"})
        assert taken.status_code == 409, "a former name stays with its repo"
        back = client.post("/api/repos/move", json={"fromRepo": "acme/small", "toRepo": "ada/tiny", "type": "model"})
        assert back.status_code == 200
        assert client.get("/api/models/ada/tiny").status_code == 200
        create_repo(client, "other")
        clash = client.post("/api/repos/move", json={"fromRepo": "ada/other", "toRepo": "ada/TINY", "type": "model"})
        assert clash.status_code == 409
        assert "A model repository called ada/TINY already exists" in clash.json()["error"]


def test_private_repo_is_not_found_by_others(hub: RunningHub) -> None:
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    with api(hub, create_token(hub, ada)) as owner, api(hub, create_token(hub, bob)) as other, api(hub) as anyone:
        create_repo(owner, "hidden", private=True)
        create_repo(owner, "open")
        for address in ("", "/revision/main", "/events", "/auth-check"):
            hidden = other.get(f"/api/models/ada/hidden{address}")
            missing = other.get(f"/api/models/ada/nothing{address}")
            assert (hidden.status_code, hidden.json()) == (404, missing.json())
            assert anyone.get(f"/api/models/ada/hidden{address}").status_code == 401
            assert owner.get(f"/api/models/ada/hidden{address}").status_code == 200
        seen = [{repo["id"] for repo in client.get("/api/models").json()} for client in (owner, other, anyone)]
        assert seen == [{"ada/open", "ada/hidden"}, {"ada/open"}, {"ada/open"}]


def test_roles_in_an_organization_decide_what_members_may_do(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    people = {
        role: create_user(hub, name) for role, name in (("read", "rob"), ("contributor", "cat"), ("write", "wim"))
    }
    create_organization(hub, "acme", ada, rob="read", cat="contributor", wim="write")
    with api(hub, create_token(hub, ada)) as admin:
        create_repo(admin, "acme/core", private=True)
    for role, user in people.items():
        with api(hub, create_token(hub, user)) as client:
            made = client.post("/api/repos/create", json={"name": f"by-{role}", "organization": "acme"})
            assert made.status_code == (403 if role == "read" else 200)
            deleted = client.request("DELETE", "/api/repos/delete", json={"name": "core", "organization": "acme"})
            assert deleted.status_code == (200 if role == "write" else 403)
            if role == "contributor":
                own = client.request(
                    "DELETE", "/api/repos/delete", json={"name": "by-contributor", "organization": "acme"}
                )
                assert own.status_code == 200


def test_settings_record_events(hub: RunningHub) -> None:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        create_repo(ada, "tiny")
        for settings in ({"private": True}, {"private": True}, {"gated": "auto"}, {"discussionsDisabled": True}):
            answer = ada.put("/api/models/ada/tiny/settings", json=settings)
            assert answer.status_code == 200, answer.text
        found = events(ada, "ada/tiny")
    assert [event["seq"] for event in found] == [1, 2, 3, 4]
    configs = [event["payload"]["updatedConfig"] for event in found[1:]]
    assert configs == [{"private": True}, {}, {}]
    assert found[1]["payload"]["repo"]["private"] is True


@pytest.mark.parametrize("name", ["-a", "a--b", "a..b", "a.git", "a b", "", "x" * 97, "é", "a/b/c"])
def test_invalid_repo_names_are_rejected(hub: RunningHub, name: str) -> None:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        assert ada.post("/api/repos/create", json={"name": name}).status_code in (403, 422)
        if name and "/" not in name:
            assert ada.get(f"/api/models/ada/{name}").status_code == 404


@pytest.mark.parametrize("content", ["é", "\x80", "A", "QQ=A"])
def test_initial_files_with_invalid_base64_are_rejected(hub: RunningHub, content: str) -> None:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        files = [{"path": "a.txt", "content": content, "encoding": "base64"}]
        refused = ada.post("/api/repos/create", json={"name": "tiny", "files": files})
        assert (refused.status_code, "is not base64" in refused.json()["error"]) == (422, True)
        assert ada.get("/api/models/ada/tiny").status_code == 404


def test_changes_of_repos_are_in_the_organizations_audit_log(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    for name in ("acme", "other"):
        create_organization(hub, name, ada)
    with api(hub, create_token(hub, ada)) as client:
        # So that the order of the entries is known.
        client.event_hooks["response"].append(lambda _: hub.clock.advance(1))
        create_repo(client, "acme/tiny", visibility="private")
        settings = "/api/models/acme/tiny/settings"
        for change in ({"private": False, "gated": "auto"}, {"gated": "auto"}, {"discussionsDisabled": True}):
            assert client.put(settings, json=change).status_code == 200
        # The old name leads to the repo.
        for name, status in (("other/small", 200), ("ada/small", 200), ("other/small", 200), ("other/small", 409)):
            asked = {"fromRepo": "acme/tiny", "toRepo": name}
            assert client.post("/api/repos/move", json=asked).status_code == status
        assert client.request("DELETE", "/api/repos/delete", json={"name": "other/small"}).status_code == 200
        create_repo(client, "mine")

        def repo_entries(organization: str) -> list[tuple[str, str]]:
            found = client.get(f"/api/organizations/{organization}/audit-log/export").json()
            return [(entry["type"], entry["message"]) for entry in reversed(found) if entry["type"].startswith("repo.")]

        (moved,) = [entry for entry in repo_entries("acme") if entry[0] == "repo.move"]
        assert moved == ("repo.move", "moved the model acme/tiny to other/small")
        assert repo_entries("acme")[:3] == [
            ("repo.create", "created the private model acme/tiny"),
            ("repo.update_settings", "changed the settings of the model acme/tiny: public, gated (auto)"),
            ("repo.update_settings", "changed the settings of the model acme/tiny: discussions off"),
        ]
        allowed = [entry for entry in repo_entries("other") if entry[0] == "repo.allow_redirect"]
        assert allowed == [("repo.allow_redirect", "allowed other/small to redirect to ada/small")]
        assert [entry for entry in repo_entries("other") if entry not in allowed] == [
            ("repo.move", "moved the model acme/tiny to other/small"),
            ("repo.move", "moved the model other/small to ada/small"),
            ("repo.move", "moved the model ada/small to other/small"),
            ("repo.delete", "deleted the model other/small"),
        ]
