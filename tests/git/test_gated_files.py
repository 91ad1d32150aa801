"""A gated repo hides its files from users without access, even if their pull request names one README.md."""

from tests.bed import packs
from tests.bed.people import api, browser_of, create_token, create_user
from tests.bed.repos import create_commit, create_repo, head_of, send_commit, send_lines
from tests.git.conftest import Scene

SECRET = b"only for those who were let in\n"
PULL_REQUEST = "refs%2Fpr%2F1"


def test_pull_request_does_not_expose_gated_files(scene: Scene) -> None:
    create_repo(scene.client, "gated")
    create_commit(
        scene.client, "ada/gated", {"README.md": b"# What it is\n", "secret.txt": SECRET, "weights.bin": SECRET}
    )
    assert scene.client.put("/api/models/ada/gated/settings", json={"gated": "manual"}).status_code == 200
    bob = create_user(scene.hub, "bob")
    with api(scene.hub, create_token(scene.hub, bob)) as client:
        opened = send_commit(client, "ada/gated", {"idea.txt": b"an idea\n"}, query="?create_pr=1")
        assert opened.status_code == 200, opened.text
        ids = {entry["path"]: entry["oid"] for entry in client.get("/api/models/ada/gated/tree/main").json()}
        # File names and git ids are public, which suffices for a tree that calls one of them README.md.
        for name in ("secret.txt", "weights.bin"):
            before = head_of(client, "ada/gated", "refs/pr/1")
            tree = packs.Object(packs.TREE, b"100644 README.md\0" + bytes.fromhex(ids[name]))
            tip = packs.commit(tree, before)
            body = packs.commands([(before, tip.sha, "refs/pr/1")]) + packs.pack([tree, tip])
            token = client.headers["authorization"].removeprefix("Bearer ")
            assert packs.report_of(packs.push(scene.hub.url, token, body, "ada/gated"))[1] == "ok refs/pr/1"
            for rev in (PULL_REQUEST, tip.sha, tip.sha[:10]):
                answer = client.get(f"/ada/gated/resolve/{rev}/README.md")
                assert (answer.status_code, answer.headers.get("x-error-code")) == (403, "GatedRepo"), rev
        with browser_of(scene.hub, bob) as browser:
            assert SECRET.decode().strip() not in browser.get(f"/ada/gated/blob/{PULL_REQUEST}/README.md").text
        # What the owner made public stays public under any name.
        for rev in ("main", "HEAD", "refs%2Fheads%2Fmain", head_of(client, "ada/gated")):
            assert client.get(f"/ada/gated/resolve/{rev}/README.md").text == "# What it is\n", rev


def test_copy_within_the_repo_stays_gated(scene: Scene) -> None:
    """By its SHA-256, which may be known from elsewhere."""
    create_repo(scene.client, "gated")
    create_commit(scene.client, "ada/gated", {"weights.bin": SECRET})
    oid = scene.client.get("/api/models/ada/gated/tree/main").json()[-1]["lfs"]["oid"]
    assert scene.client.put("/api/models/ada/gated/settings", json={"gated": "auto"}).status_code == 200
    with api(scene.hub, create_token(scene.hub, create_user(scene.hub, "bob"))) as client:
        named = ("lfsFile", {"path": "README.md", "algo": "sha256", "oid": oid})
        assert send_lines(client, "ada/gated", named, query="?create_pr=1").status_code == 200
        assert client.get(f"/ada/gated/resolve/{PULL_REQUEST}/README.md").status_code == 403
