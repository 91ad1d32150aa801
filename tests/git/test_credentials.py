"""Which credentials git may send, and how invalid ones are answered."""

import base64

import httpx
import pytest
from tests.bed.git import run_git
from tests.bed.people import PASSWORD, api, browser_of, create_token, create_user
from tests.bed.repos import create_repo
from tests.git.conftest import Scene

pytestmark = pytest.mark.one_engine

REFS = "/ada/tiny.git/info/refs?service="
FETCH, PUSH = "git-upload-pack", "git-receive-pack"


def basic(user: str, password: str) -> dict[str, str]:
    return {"authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


def test_anonymous_users_clone_public_repos_and_cannot_push(scene: Scene) -> None:
    with api(scene.hub) as anyone:
        assert anyone.get(REFS + FETCH).status_code == 200
        for answer in (
            anyone.get(REFS + PUSH),
            anyone.post("/ada/tiny/git-receive-pack", headers={"content-type": f"application/x-{PUSH}-request"}),
        ):
            assert (answer.status_code, answer.headers["www-authenticate"]) == (401, 'Basic realm="hubgate"')
            assert answer.headers["content-type"].startswith("text/plain")


def test_token_is_accepted_in_each_place(scene: Scene) -> None:
    good = [
        basic("hf_user", scene.token),
        basic("ada", scene.token),
        basic(scene.token, ""),
        {"authorization": f"Bearer {scene.token}"},
    ]
    for headers in good:
        with scene.hub.client(headers=headers) as client:
            assert client.get(REFS + PUSH).status_code == 200, headers


def test_invalid_credentials_are_rejected(scene: Scene) -> None:
    bad = [
        basic("ada", PASSWORD),
        basic("ada@example.org", PASSWORD),
        basic("ada", scene.token[:-1] + ("x" if scene.token[-1] != "x" else "y")),
        basic("", ""),
        {"authorization": "Basic ????"},
        {"authorization": "Bearer hf_wrong"},
        {"authorization": "Digest x"},
    ]
    for headers in bad:
        for service in (FETCH, PUSH):
            answer = httpx.get(scene.hub.url + REFS + service, headers=headers)
            assert (answer.status_code, answer.headers["www-authenticate"]) == (401, 'Basic realm="hubgate"'), headers
    with browser_of(scene.hub, scene.ada) as browser:
        assert browser.get(REFS + PUSH).status_code == 401, "a session is no token"


def test_git_reports_the_reason(scene: Scene) -> None:
    work = scene.clone("one")
    work.commit()
    wrong = scene.token[:-4] + "0000"
    assert "Authentication failed" in work.fails("push", scene.url(token=wrong), "main")
    shown = ("-c", "http.extraHeader=Authorization: Bearer hf_wrong")
    assert "could not read Username" in work.fails(*shown, "fetch", scene.url()), "it was not taken, so git asks"
    assert "could not read Username" in work.fails("push", scene.url(), "main")
    reader = create_token(scene.hub, scene.ada, "read")
    assert "can only read" in work.fails("push", scene.url(token=reader), "main")
    assert len(scene.events()) == 1


def test_private_repo_is_hidden(scene: Scene) -> None:
    create_repo(scene.client, "secret", private=True)
    bob = create_token(scene.hub, create_user(scene.hub, "bob"))
    for name in ("secret", "nowhere"):
        for service in (FETCH, PUSH):
            path = f"/ada/{name}.git/info/refs?service={service}"
            with api(scene.hub) as anyone, api(scene.hub, bob) as stranger:
                assert anyone.get(path).status_code == 401
                assert (stranger.get(path).status_code, stranger.get(path).text) == (404, "Repository not found\n")
            posted = {"content-type": f"application/x-{service}-request"}
            address = f"{scene.hub.url}/ada/{name}.git/{service}"
            assert httpx.post(address, headers=posted).status_code == 401
            assert httpx.post(address, headers={**posted, **basic("x", bob)}).status_code == 404
    done = run_git(scene.folder, "clone", scene.url("ada/secret", bob), "bobs")
    assert "not found" in done.stderr
    reader = create_token(scene.hub, scene.ada, "read")
    assert scene.clone("mine", "ada/secret", reader).head()


def test_gated_repo_is_for_users_with_access(scene: Scene) -> None:
    assert scene.client.put("/api/models/ada/tiny/settings", json={"gated": "manual"}).status_code == 200
    bob = create_token(scene.hub, create_user(scene.hub, "bob"))
    with api(scene.hub) as anyone, api(scene.hub, bob) as stranger:
        assert anyone.get(REFS + FETCH).status_code == 401
        refused = stranger.get(REFS + FETCH)
        assert (refused.status_code, refused.headers["x-error-code"]) == (403, "GatedRepo")
    scene.clone("mine")


@pytest.mark.parametrize("name", ["..", "%2e%2e", ".git", "a%2Fb", "x" * 300, "a..b", "%00", "tiny.git.git"])
def test_invalid_repo_names_are_rejected(scene: Scene, name: str) -> None:
    answer = httpx.get(f"{scene.hub.url}/ada/{name}/info/refs?service={FETCH}")
    assert answer.status_code in (400, 401, 404), answer.text


def test_only_the_smart_protocol_is_served(scene: Scene) -> None:
    with api(scene.hub) as anyone:
        for query in ("", "?service=", "?service=git-upload-archive", "?service=upload-pack"):
            refused = anyone.get("/ada/tiny.git/info/refs" + query)
            assert (refused.status_code, "smart protocol" in refused.text) == (403, True)
        for path in ("HEAD", "objects/info/packs", "config", "packed-refs", "objects/00/" + "0" * 38):
            assert anyone.get(f"/ada/tiny.git/{path}").status_code == 404
        wrong = anyone.post("/ada/tiny.git/git-upload-pack", content=b"0000")
        assert wrong.status_code == 415
        assert anyone.get("/ada/tiny.git/git-upload-pack").status_code == 405
