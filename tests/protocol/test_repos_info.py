"""The description of a repo, and its settings."""

from typing import Any

import httpx
import pytest
from tests.bed.people import api, create_token, create_user
from tests.bed.repos import create_commit, create_repo, send_commit, send_large, send_lines
from tests.bed.running_hub import RunningHub

pytestmark = pytest.mark.one_engine

REPO = "/api/models/ada/tiny"


def test_repo_info_has_all_fields(hub: RunningHub) -> None:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        made = create_repo(ada, "tiny", license="mit")
        first = ada.get(REPO).json()
        hub.clock.advance(60)
        oid = send_large(ada, "ada/tiny", b"\0large")
        value = {"path": "w.bin", "algo": "sha256", "oid": oid, "size": 6}
        assert send_lines(ada, "ada/tiny", ("lfsFile", value)).status_code == 200
        info = ada.get(REPO).json()
        assert info == {
            "_id": made["id"],
            "id": "ada/tiny",
            "modelId": "ada/tiny",
            "author": "ada",
            "sha": info["sha"],
            "createdAt": first["createdAt"],
            "lastModified": info["lastModified"],
            "private": False,
            "gated": False,
            "disabled": False,
            "downloads": 0,
            "likes": 0,
            "tags": ["license:mit"],
            "cardData": {"license": "mit"},
            "siblings": [{"rfilename": name} for name in (".gitattributes", "README.md", "w.bin")],
            "usedStorage": 6,
        }
        assert first["createdAt"] == first["lastModified"] < info["lastModified"]
        assert info["lastModified"].endswith("Z")
        for query in ("blobs=true", "blobs=True", "blobs=1", "blobs=1&securityStatus=true"):
            by_name = {one["rfilename"]: one for one in ada.get(f"{REPO}?{query}").json()["siblings"]}
            assert by_name["w.bin"]["lfs"] == {"size": 6, "sha256": oid, "pointerSize": 126}
            assert by_name["w.bin"]["size"] == 6
            assert set(by_name["README.md"]) == {"rfilename", "size", "blobId"}
        old = ada.get(f"{REPO}/revision/{first['sha']}").json()
        assert (old["sha"], len(old["siblings"])) == (first["sha"], 2)
        assert ada.get(f"{REPO}?expand=siblings").json()["siblings"] == info["siblings"]
        assert "siblings" not in ada.get(f"{REPO}?expand=sha").json()
        # By any case of its name, and shown as it was created.
        assert ada.get("/api/models/ADA/Tiny").json()["id"] == "ada/tiny"
        for missing in ("/revision/none", "/revision/" + "0" * 40, "/revision/refs%2Fpr%2F9"):
            refused = ada.get(REPO + missing)
            assert (refused.status_code, refused.headers["x-error-code"]) == (404, "RevisionNotFound")
        for name in ("none", "a--b", "a..b", "%F0%9F%98%80", "x" * 300, "tiny.git", ".."[:1] + "x"):
            refused = ada.get(f"/api/models/ada/{name}")
            assert (refused.status_code, refused.headers["x-error-code"]) == (404, "RepoNotFound"), name


WITHOUT_NAMESPACE = [
    "GET /api/models/gpt2",
    "GET /api/models/gpt2/refs",
    "GET /api/models/gpt2/revision/main",
    "GET /api/models/gpt2/tree/main",
    "GET /api/models/gpt2/tree/refs%2Fpr%2F1/a/b",
    "GET /api/datasets/squad/tree/main/a",
    "GET /api/spaces/demo/commits/main",
    "POST /api/models/gpt2/paths-info/main",
    "POST /api/models/gpt2/preupload/main",
    "DELETE /api/models/gpt2/branch/dev",
    "GET /gpt2/resolve/main/config.json",
    "HEAD /gpt2/resolve/main/config.json",
    "GET /gpt2/raw/main/a/b",
    "GET /datasets/squad/resolve/main/a.csv",
    "GET /spaces/demo/raw/main/app.py",
]


def test_repo_without_a_namespace_is_not_found(sqlite_hub: RunningHub) -> None:
    """Clients need the error code: without it `file_exists("gpt2", …)` raises, and a download looks like a lost
    connection.
    """
    token = create_token(sqlite_hub, create_user(sqlite_hub, "ada"))
    for client, status in ((api(sqlite_hub, token), 404), (api(sqlite_hub), 401)):
        with client:
            answers = {asked: client.request(*asked.split()) for asked in WITHOUT_NAMESPACE}
        said = {asked: (answer.status_code, answer.headers.get("x-error-code")) for asked, answer in answers.items()}
        assert said == dict.fromkeys(WITHOUT_NAMESPACE, (status, "RepoNotFound"))


def test_repo_may_be_named_like_a_route(sqlite_hub: RunningHub) -> None:
    with api(sqlite_hub, create_token(sqlite_hub, create_user(sqlite_hub, "ada"))) as ada:
        for name in ("tree", "resolve", "commits", "refs", "raw"):
            create_repo(ada, name, files=[{"path": "f", "content": "x"}])
            for tail in ("", "/refs", "/tree/main", "/commits/main", "/revision/main", "/events"):
                assert ada.get(f"/api/models/ada/{name}{tail}").status_code == 200, (name, tail)
            for verb in ("resolve", "raw"):
                assert ada.get(f"/ada/{name}/{verb}/main/f").text == "x", (name, verb)
            assert ada.get(f"/api/models/ada/{name}/commit/main").status_code == 405
        unknown = ada.get("/api/models/ada/tiny/nonsense/main")
        assert (unknown.status_code, "x-error-code" in unknown.headers) == (404, False)


def test_visibility_settings_decide_who_sees_it(hub: RunningHub) -> None:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada, api(hub) as anyone:
        create_repo(ada, "tiny")
        create_repo(ada, "tiny", "space")

        def put(settings: Any, repo_type: str = "model") -> httpx.Response:
            return ada.put(f"/api/{repo_type}s/ada/tiny/settings", json=settings)

        def seen(repo_type: str = "model") -> bool:
            return anyone.get(f"/api/{repo_type}s/ada/tiny").status_code == 200

        for settings, visible in (
            ({"private": True}, False),
            ({"visibility": "public"}, True),
            ({"visibility": "private"}, False),
            ({"private": False, "visibility": "public", "unknown": 1}, True),
        ):
            answer = put(settings)
            assert answer.status_code == 200, settings
            assert (answer.json()["private"], answer.json()["visibility"]) == (
                not visible,
                "public" if visible else "private",
            )
            assert seen() is visible
        # An unknown value never makes a repo visible.
        assert put({"visibility": "protected"}, "space").json()["private"] is True
        assert seen("space") is False
        assert put({"visibility": "protected"}).status_code == 422
        for gate in ("auto", "manual", False):
            assert put({"gated": gate}).json()["gated"] == gate
            assert ada.get(REPO).json()["gated"] == gate
        for bad in (
            {"private": "yes"}, {"private": True, "visibility": "public"}, {"visibility": "hidden"}, {"gated": True},
            {"gated": "x"}, {"gated": 0}, {"discussionsDisabled": 1}, [], "x",
        ):  # fmt: skip
            assert put(bad).status_code == 422, bad
        assert put({}).status_code == 200
        assert anyone.put(f"{REPO}/settings", json={"private": True}).status_code == 401
        assert seen()


def test_pull_requests_can_be_disabled(hub: RunningHub) -> None:
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    with api(hub, create_token(hub, ada)) as owner, api(hub, create_token(hub, bob)) as other:
        create_repo(owner, "tiny")
        assert owner.put(f"{REPO}/settings", json={"discussionsDisabled": True}).json()["discussionsDisabled"] is True
        for client in (owner, other):
            refused = send_commit(client, "ada/tiny", {"f": b""}, query="?create_pr=1")
            assert (refused.status_code, "turned off" in refused.json()["error"]) == (403, True)
        assert owner.put(f"{REPO}/settings", json={"discussionsDisabled": False}).status_code == 200
        assert send_commit(other, "ada/tiny", {"f": b""}, query="?create_pr=1").status_code == 200


def test_auth_check_reports_permissions(hub: RunningHub) -> None:
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    with api(hub, create_token(hub, ada)) as owner, api(hub, create_token(hub, bob)) as other, api(hub) as anyone:
        create_repo(owner, "tiny")

        def auth_check(address: str) -> list[tuple[int, str]]:
            answers = [client.get(f"{REPO}/auth-check{address}") for client in (owner, other, anyone)]
            return [(answer.status_code, answer.headers.get("x-error-code", "")) for answer in answers]

        assert owner.get(f"{REPO}/auth-check").text == "OK"
        assert auth_check("") == [(200, "")] * 3
        assert auth_check("/write") == [(200, ""), (403, ""), (401, "")]
        assert owner.put(f"{REPO}/settings", json={"gated": "auto"}).status_code == 200
        assert auth_check("") == [(200, ""), (403, "GatedRepo"), (401, "GatedRepo")]
        assert owner.put(f"{REPO}/settings", json={"gated": False, "private": True}).status_code == 200
        assert auth_check("") == auth_check("/write") == [(200, ""), (404, "RepoNotFound"), (401, "RepoNotFound")]


def test_repo_can_be_created_with_large_files(hub: RunningHub) -> None:
    """Files that match .gitattributes are stored as large files, however they are sent."""
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        files = [{"path": "w.bin", "content": "AGw=", "encoding": "base64"}, {"path": "a.txt", "content": "x"}]
        create_repo(ada, "tiny", files=files)
        create_repo(ada, "second")
        create_commit(ada, "ada/second", {"w.bin": b"\0l", "a.txt": b"x"})
        one, two = (ada.get(f"/api/models/ada/{name}/tree/main").json() for name in ("tiny", "second"))
        assert one == two
        assert "lfs" in one[-1]
        assert ada.get("/ada/tiny/resolve/main/w.bin").content == b"\0l"
        assert ada.get(REPO).json()["usedStorage"] == 2
        assert [event["payload"]["event"]["action"] for event in ada.get(f"{REPO}/events").json()] == ["create"]
        for bad in (
            [{"path": "a", "content": "%", "encoding": "base64"}], [{"path": "a"}], [{"path": "a", "content": 1}],
            [{"path": "a", "content": "x", "encoding": "utf-16"}],
            [{"path": f"f{number}", "content": ""} for number in range(101)],
            [{"path": "a", "content": "x"}, {"path": "a/b", "content": "x"}],
        ):  # fmt: skip
            assert ada.post("/api/repos/create", json={"name": "third", "files": bad}).status_code == 422, bad
        assert ada.get("/api/models/ada/third").status_code == 404
