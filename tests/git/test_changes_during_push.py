"""Changes while a push is being received: permissions are checked again right before its refs move."""

import pytest
from tests.bed.packs import SlowPush, blob, commands, commit, pack, tree
from tests.bed.people import api, create_organization, create_token, create_user
from tests.bed.processes import until
from tests.bed.repos import create_commit, create_repo
from tests.bed.repos import send_commit as commit_over_http
from tests.git.conftest import Scene

from hubgate.server.accounts.organizations import members
from hubgate.server.accounts.roles import Role
from hubgate.server.audit.model import SYSTEM
from hubgate.server.resources import Hub
from hubgate.server.storage.database import Tx

MAIN = "refs/heads/main"


def half_way(scene: Scene, token: str, repo: str, ref: str, old: str | None) -> tuple[SlowPush, bytes]:
    """A push that the hub has started to unpack, and the rest of its body."""
    item = blob(b"late\n")
    root = tree(("100644", "late.txt", item))
    head = commit(root, *([old] if old else []))
    content = pack([item, root, head])
    push = SlowPush(scene.hub.address, token, commands([(old, head.sha, ref)]) + content[:20], repo)
    until(lambda: scene.in_quarantine)
    return push, content[20:]


def finished(scene: Scene, push: SlowPush, rest: bytes) -> bytes:
    push.send(rest)
    answer = push.finish()
    until(lambda: not scene.in_quarantine)
    return answer


def test_undisturbed_push_succeeds(scene: Scene) -> None:
    push, rest = half_way(scene, scene.token, "ada/tiny", MAIN, scene.refs()[MAIN])
    assert b"ok refs/heads/main" in finished(scene, push, rest)
    assert len(scene.events()) == 2


@pytest.mark.parametrize("how", ["removed", "demoted"])
def test_lost_role_rejects_the_push(scene: Scene, how: str) -> None:
    bob = create_user(scene.hub, "bob")
    acme = create_organization(scene.hub, "acme", scene.ada, bob="write")
    head = scene.client.get(f"/api/models/{create_repo(scene.client, 'acme/theirs')['name']}").json()["sha"]
    push, rest = half_way(scene, create_token(scene.hub, bob), "acme/theirs", MAIN, head)

    async def lose(opened: Hub) -> None:
        if how == "removed":
            await members.remove(opened.accounts, acme, bob, SYSTEM)
        else:
            await members.change_role(opened.accounts, acme, bob, Role.READ, SYSTEM)

    scene.hub.call(lose)
    assert b"ng refs/heads/main You need the write role" in finished(scene, push, rest)
    assert scene.client.get("/api/models/acme/theirs").json()["sha"] == head


def test_revoked_token_rejects_the_push(scene: Scene) -> None:
    push, rest = half_way(scene, scene.token, "ada/tiny", MAIN, scene.refs()[MAIN])
    before = scene.refs()
    with api(scene.hub) as anyone:
        assert anyone.post("/api/credentials/revoke", json={"credentials": [scene.token]}).is_success
    assert b"Invalid credentials" in finished(scene, push, rest)
    assert scene.refs() == before


def test_deleted_repo_rejects_the_push(scene: Scene) -> None:
    push, rest = half_way(scene, scene.token, "ada/tiny", MAIN, scene.refs()[MAIN])
    assert scene.client.request("DELETE", "/api/repos/delete", json={"name": "tiny"}).status_code == 200
    answer = finished(scene, push, rest)
    assert b" 200 " in answer.split(b"\r\n")[0]
    assert b"ok refs/heads/main" not in answer
    assert '"level":"error"' not in scene.hub.log


def test_moved_branch_rejects_the_push(scene: Scene) -> None:
    push, rest = half_way(scene, scene.token, "ada/tiny", MAIN, scene.refs()[MAIN])
    sha = create_commit(scene.client, "ada/tiny", {"first.txt": b"first\n"})
    assert b"ng refs/heads/main fetch first" in finished(scene, push, rest)
    assert scene.refs() == {MAIN: sha}
    assert len(scene.events()) == 2


def test_closed_pull_request_rejects_the_push(scene: Scene) -> None:
    bob = create_token(scene.hub, create_user(scene.hub, "bob"))
    with api(scene.hub, bob) as client:
        commit_over_http(client, "ada/tiny", {"idea.txt": b"x"}, query="?create_pr=1")
    push, rest = half_way(scene, bob, "ada/tiny", "refs/pr/1", scene.refs()["refs/pr/1"])

    async def unit(tx: Tx) -> None:
        await tx.exec("UPDATE discussions SET status = 'closed'")

    scene.hub.call(lambda opened: opened.db.write(unit))
    assert b"ng refs/pr/1 no such pull request" in finished(scene, push, rest)


def test_push_to_a_renamed_repo_succeeds(scene: Scene) -> None:
    """A push that began under the old name succeeds under the new one."""
    push, rest = half_way(scene, scene.token, "ada/tiny", MAIN, scene.refs()[MAIN])
    asked = {"fromRepo": "ada/tiny", "toRepo": "ada/small", "type": "model"}
    assert scene.client.post("/api/repos/move", json=asked).status_code == 200
    assert b"ok refs/heads/main" in finished(scene, push, rest)
    assert scene.events("ada/small")[-1]["repo"]["name"] == "ada/small"


def test_disconnected_push_leaves_nothing(scene: Scene) -> None:
    push, _ = half_way(scene, scene.token, "ada/tiny", MAIN, scene.refs()[MAIN])
    push.disconnect()
    until(lambda: not scene.in_quarantine)
    assert len(scene.events()) == 1
