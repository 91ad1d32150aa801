"""A renamed repo, by its old name."""

import pytest
from tests.bed.people import api, create_organization
from tests.bed.repos import create_repo
from tests.git.conftest import Scene


def move(scene: Scene, old: str, new: str) -> None:
    asked = {"fromRepo": old, "toRepo": new, "type": "model"}
    assert scene.client.post("/api/repos/move", json=asked).status_code == 200


@pytest.mark.one_engine
def test_git_follows_a_rename(scene: Scene) -> None:
    create_repo(scene.client, "secret", private=True)
    create_organization(scene.hub, "acme", scene.ada)
    for repo in ("tiny", "secret"):
        work = scene.clone(f"before-{repo}", f"ada/{repo}")
        move(scene, f"ada/{repo}", f"acme/{repo}-2")
        head = work.commit()
        work.git("push", "-q", "origin", "main")
        work.git("pull", "-q")
        after = scene.clone(f"after-{repo}", f"ada/{repo}.git")
        assert after.head() == head
        assert scene.events(f"acme/{repo}-2")[-1]["updatedRefs"][0]["newSha"] == head


@pytest.mark.one_engine
def test_old_name_redirects_only_users_who_may_see_the_repo(scene: Scene) -> None:
    create_repo(scene.client, "secret", private=True)
    move(scene, "ada/secret", "ada/hidden")
    with api(scene.hub) as anyone:
        moved = scene.client.get("/ada/secret.git/info/refs?service=git-upload-pack")
        assert moved.status_code == 307
        assert moved.headers["location"] == "/ada/hidden.git/info/refs?service=git-upload-pack"
        for name in ("secret", "hidden", "nowhere"):
            refused = anyone.get(f"/ada/{name}.git/info/refs?service=git-upload-pack")
            assert (refused.status_code, "location" in refused.headers) == (401, False)
    assert scene.client.get("/ADA/Hidden/info/refs?service=git-upload-pack").status_code == 200
