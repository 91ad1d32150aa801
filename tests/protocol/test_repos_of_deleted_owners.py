"""Deleting an owner deletes its repos: rows, events and folders, despite concurrent changes."""

from collections.abc import Callable

import httpx
import pytest
from tests.bed.concurrency import run_concurrently
from tests.bed.people import PASSWORD, api, browser_of, create_organization, create_token, create_user, submit
from tests.bed.repos import create_repo
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts import own_account
from hubgate.server.accounts.organizations import settings
from hubgate.server.audit.model import SYSTEM

ROUNDS = 4


def kinds_recorded(hub: RunningHub, repo_id: str) -> list[tuple[str, str, int]]:
    statement = "SELECT scope, action, repo_seq FROM events WHERE repo_id = :id ORDER BY repo_seq"
    return [tuple(row) for row in hub.call(lambda opened: opened.db.few(statement, {"id": repo_id}))]


def owners_without_account(hub: RunningHub) -> int:
    statement = """
        SELECT count(*) AS lost FROM repos
        WHERE owner_id NOT IN (SELECT id FROM users) AND owner_id NOT IN (SELECT id FROM organizations)
    """
    row = hub.call(lambda opened: opened.db.one(statement, {}))
    return int(row["lost"]) if row else 0


def test_users_repos_are_deleted_with_the_account(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    with api(hub, create_token(hub, ada)) as script, browser_of(hub, ada) as browser:
        made = [create_repo(script, "tiny", kind) for kind in ("model", "dataset", "space")]
        assert "with 3 repos, 0 collections, 1 access token and 0 memberships" in browser.get("/settings/delete").text
        assert submit(browser, "/settings/delete", name="ada", password=PASSWORD).status_code == 303
    for repo in made:
        assert kinds_recorded(hub, repo["id"]) == [("repo", "create", 1), ("repo", "delete", 2)]
    with api(hub) as anyone:
        assert anyone.get("/api/models/ada/tiny").status_code == 401
        assert anyone.get("/api/models").json() == []


@pytest.mark.one_engine
def test_organizations_repos_are_deleted_with_it_and_members_repos_remain(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    create_organization(hub, "acme", ada)
    with api(hub, create_token(hub, ada)) as script, browser_of(hub, ada) as browser:
        theirs, own = create_repo(script, "acme/tiny"), create_repo(script, "tiny")
        path = "/organizations/acme/settings/delete"
        assert "with 1 repo, 0 collections, 1 membership and 0 open invitations" in browser.get(path).text
        assert submit(browser, path, name="acme").status_code == 303
        assert script.get("/api/models/acme/tiny").status_code == 404
        assert script.get("/api/models/ada/tiny").status_code == 200
    assert [action for _, action, _ in kinds_recorded(hub, theirs["id"])] == ["create", "delete"]
    assert [action for _, action, _ in kinds_recorded(hub, own["id"])] == ["create"]


def test_no_repo_is_created_in_or_moved_to_a_deleted_account(hub: RunningHub) -> None:
    """Creating, moving there and moving away happen before the deletion or not at all."""
    ada = create_user(hub, "ada")
    with api(hub, create_token(hub, ada)) as script:
        for number in range(ROUNDS):
            acme = create_organization(hub, f"acme{number}", ada)
            coming, going = create_repo(script, f"coming{number}"), create_repo(script, f"acme{number}/going")

            def delete(acme: object = acme) -> httpx.Response:
                hub.call(lambda opened: settings.delete(opened.accounts, acme, SYSTEM))  # type: ignore[arg-type]
                return httpx.Response(204)

            def move(source: str, target: str) -> Callable[[], httpx.Response]:
                return lambda: script.post("/api/repos/move", json={"fromRepo": source, "toRepo": target})

            def create(owner: str = acme.name) -> httpx.Response:
                return script.post("/api/repos/create", json={"name": "new", "organization": owner})

            moves = [move(coming["name"], f"{acme.name}/came"), move(going["name"], f"ada/went{number}")]
            _, *answers = run_concurrently([delete, create, *moves])
            assert {answer.status_code for answer in answers} <= {200, 403, 404}, [answer.text for answer in answers]
            assert owners_without_account(hub) == 0
            went = script.get(f"/api/models/ada/went{number}").status_code
            assert went == {200: 200}.get(answers[2].status_code, 404)


@pytest.mark.one_engine
def test_operator_deletes_a_user_with_repos(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    with api(hub, create_token(hub, ada)) as script:
        made = create_repo(script, "tiny")
    hub.call(lambda opened: own_account.delete(opened.accounts, ada, SYSTEM))
    assert [action for _, action, _ in kinds_recorded(hub, made["id"])] == ["create", "delete"]
