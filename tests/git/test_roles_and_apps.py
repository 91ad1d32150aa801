"""Roles in organizations and scopes of apps, for git (attacks O57, O58)."""

import pytest
from tests.bed.apps import create_app, tokens_for
from tests.bed.git import WorkingCopy, run_git
from tests.bed.people import api, create_organization, create_token, create_user
from tests.bed.repos import create_repo
from tests.git.conftest import Scene

from hubgate.server.accounts.organizations import members
from hubgate.server.accounts.roles import Role
from hubgate.server.audit.model import SYSTEM


def outcome(scene: Scene, repo: str, token: str, number: int) -> str:
    """The result of a clone and a push: "hidden", "read" or "write"."""
    folder = scene.folder / f"try-{number}"
    done = run_git(scene.folder, "clone", "-q", scene.url(repo, token), str(folder))
    if done.returncode:
        assert "not found" in done.stderr, done.stderr
        return "hidden"
    work = WorkingCopy(folder)
    work.commit(f"{number}.txt")
    pushed = run_git(folder, "push", "origin", "main")
    if pushed.returncode:
        assert "403" in pushed.stderr, pushed.stderr
        return "read"
    return "write"


@pytest.mark.one_engine
def test_roles_decide_who_clones_and_pushes(scene: Scene) -> None:
    people = {name: create_user(scene.hub, name) for name in ("reader", "maker", "writer", "stranger")}
    acme = create_organization(scene.hub, "acme", scene.ada, reader="read", maker="contributor", writer="write")
    create_repo(scene.client, "acme/theirs", private=True)
    tokens = {name: create_token(scene.hub, user) for name, user in people.items()}
    with api(scene.hub, tokens["maker"]) as maker:
        create_repo(maker, "acme/own", private=True)
    expected = {
        ("reader", "acme/theirs"): "read",
        ("maker", "acme/theirs"): "read",
        ("maker", "acme/own"): "write",
        ("writer", "acme/own"): "write",
        ("stranger", "acme/theirs"): "hidden",
    }
    found = {(name, repo): outcome(scene, repo, tokens[name], number) for number, (name, repo) in enumerate(expected)}
    assert found == expected
    writer = people["writer"]
    scene.hub.call(lambda opened: members.change_role(opened.accounts, acme, writer, Role.READ, SYSTEM))
    assert outcome(scene, "acme/own", tokens["writer"], 10) == "read"
    scene.hub.call(lambda opened: members.remove(opened.accounts, acme, writer, SYSTEM))
    assert outcome(scene, "acme/own", tokens["writer"], 11) == "hidden"


@pytest.mark.one_engine
def test_apps_push_within_their_scopes(scene: Scene) -> None:
    """An app sees only those private repos that its scopes cover (O58)."""
    scopes = ("openid", "read-repos", "write-repos", "contribute-repos")
    one, two = (create_app(scene.hub, name=name, scopes=scopes) for name in ("One", "Two"))

    def token(app: object, scope: str) -> str:
        return tokens_for(app, scene.ada, scope=f"openid {scope}")["access_token"]  # type: ignore[arg-type]

    contribute = token(one, "contribute-repos")
    with api(scene.hub, contribute) as client:
        create_repo(client, "ada/made", private=True)
    create_repo(scene.client, "own", private=True)
    expected = {
        ("made", contribute): "write",
        ("own", contribute): "hidden",
        ("made", token(two, "contribute-repos")): "hidden",
        ("own", token(two, "write-repos")): "write",
        ("made", token(two, "write-repos")): "write",
        ("own", token(two, "read-repos")): "read",
    }
    found = {
        (repo, given): outcome(scene, f"ada/{repo}", given, number) for number, (repo, given) in enumerate(expected)
    }
    assert list(found.values()) == list(expected.values())
    # A public repo that the app did not create can be read by anyone, but not changed by the app.
    assert outcome(scene, "ada/tiny", contribute, 10) == "read"


@pytest.mark.one_engine
def test_organization_that_was_not_granted_is_out_of_reach(scene: Scene) -> None:
    create_organization(scene.hub, "acme", scene.ada)
    create_repo(scene.client, "acme/theirs", private=True)
    create_repo(scene.client, "acme/open")
    app = create_app(scene.hub, scopes=("openid", "write-repos"))
    token = tokens_for(app, scene.ada)["access_token"]
    assert outcome(scene, "acme/theirs", token, 1) == "hidden"
    assert outcome(scene, "acme/open", token, 2) == "read"
