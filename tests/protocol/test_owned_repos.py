"""`/api/settings/repositories` and the same of an organization: lists what the signed-in caller may see."""

from collections.abc import Iterator
from contextlib import ExitStack

import httpx
import pytest
from tests.bed.people import api, create_organization, create_token, create_user
from tests.bed.repos import create_repo, send_large
from tests.bed.running_hub import RunningHub

MINE = "/api/settings/repositories"


def of(name: str) -> str:
    return f"/api/organizations/{name}/settings/repositories"


Callers = dict[str, httpx.Client]


@pytest.fixture
def callers(hub: RunningHub) -> Iterator[Callers]:
    """Ada is admin of acme, bob a reader there, eve is admin of another organization."""
    users = {name: create_user(hub, name) for name in ("ada", "bob", "eve")}
    create_organization(hub, "acme", users["ada"], bob="read")
    create_organization(hub, "other", users["eve"])
    with ExitStack() as stack:
        clients = {name: stack.enter_context(api(hub, create_token(hub, user))) for name, user in users.items()}
        clients["anyone"] = stack.enter_context(api(hub))
        create_repo(clients["ada"], "acme/open")
        create_repo(clients["ada"], "acme/closed", "dataset", private=True)
        create_repo(clients["ada"], "own", private=True)
        create_repo(clients["eve"], "other/theirs")
        send_large(clients["ada"], "acme/open", b"x" * 1_000)
        send_large(clients["ada"], "acme/closed", b"y" * 3_000, "datasets/")
        yield clients


def listed(answer: httpx.Response) -> dict[str, tuple[str, str, int, float]]:
    assert answer.status_code == 200, answer.text
    fields = ("type", "visibility", "storage", "storagePercent")
    return {repo["id"]: tuple(repo[field] for field in fields) for repo in answer.json()}  # type: ignore[misc]


def test_members_see_all_repos_of_their_organization(callers: Callers) -> None:
    for name in ("ada", "bob"):
        assert listed(callers[name].get(of("acme"))) == {
            "acme/open": ("model", "public", 1_000, 25.0),
            "acme/closed": ("dataset", "private", 3_000, 75.0),
        }
    first = callers["bob"].get(of("acme"), params={"limit": 1})
    second = callers["bob"].get(first.links["next"]["url"])
    assert listed(first) | listed(second) == listed(callers["ada"].get(of("acme")))
    assert (len(first.json()), len(second.json()), "next" in second.links) == (1, 1, False)


@pytest.mark.one_engine
def test_others_see_public_repos_only(callers: Callers) -> None:
    """The share of storage covers visible repos only: otherwise it would reveal the size of private ones."""
    assert listed(callers["eve"].get(of("acme"))) == {"acme/open": ("model", "public", 1_000, 100.0)}
    assert listed(callers["ada"].get(of("other"))) == {"other/theirs": ("model", "public", 0, 0.0)}


@pytest.mark.one_engine
def test_anonymous_callers_need_a_token(hub: RunningHub, callers: Callers) -> None:
    for path in (of("acme"), of("other"), of("nobody"), MINE):
        refused = callers["anyone"].get(path)
        assert refused.status_code == 401, path
        assert refused.headers["www-authenticate"].startswith("Bearer ")
        assert callers["anyone"].get(path, headers={"authorization": "Bearer hf_wrong"}).status_code == 401


def test_organization_is_found_by_name_in_any_case(callers: Callers) -> None:
    assert callers["ada"].get(of("nobody")).status_code == 404
    assert callers["ada"].get(of("eve")).status_code == 404, "a user is not an organization"
    assert listed(callers["ada"].get(of("ACME"))).keys() == {"acme/open", "acme/closed"}


@pytest.mark.one_engine
def test_own_repos_are_listed(callers: Callers) -> None:
    assert listed(callers["ada"].get(MINE)) == {"ada/own": ("model", "private", 0, 0.0)}
    assert listed(callers["bob"].get(MINE)) == {}


@pytest.mark.one_engine
def test_answers_match_the_document(callers: Callers) -> None:
    paths = callers["anyone"].get("/api/openapi.json").json()["paths"]
    assert {"200", "307", "401", "404"} <= paths[of("{name}")]["get"]["responses"].keys()
    assert {"200", "401"} <= paths[MINE]["get"]["responses"].keys()
