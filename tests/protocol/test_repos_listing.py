"""Lists of repos over the API: visibility, order and pages."""

import re
from typing import Any

import httpx
import pytest
from tests.bed.apps import create_app, tokens_for
from tests.bed.people import api, create_organization, create_token, create_user
from tests.bed.repos import create_commit, create_repo
from tests.bed.running_hub import RunningHub


def ids(client: httpx.Client, repo_type: str = "model", **query: Any) -> list[str]:
    answer = client.get(f"/api/{repo_type}s", params=query)
    assert answer.status_code == 200, answer.text
    return [repo["id"] for repo in answer.json()]


@pytest.mark.one_engine
def test_lists_contain_visible_repos_only(hub: RunningHub) -> None:
    ada, bob, rob = (create_user(hub, name) for name in ("ada", "bob", "rob"))
    create_organization(hub, "acme", ada, rob="read")
    with api(hub, create_token(hub, ada)) as owner, api(hub, create_token(hub, bob)) as bobs:
        for name in ("ada/hidden", "acme/hidden"):
            create_repo(owner, name, private=True)
        create_repo(owner, "ada/open")
        create_repo(owner, "ada/data", "dataset")
        create_repo(bobs, "hidden", private=True)
    app = create_app(hub, scopes=("openid", "profile", "read-repos", "write-repos"))
    callers = {
        None: set(),
        create_token(hub, ada): {"ada/hidden", "acme/hidden"},
        create_token(hub, ada, "read"): {"ada/hidden", "acme/hidden"},
        create_token(hub, bob): {"bob/hidden"},
        create_token(hub, rob): {"acme/hidden"},
        tokens_for(app, ada, scope="openid read-repos")["access_token"]: {"ada/hidden"},
        tokens_for(app, ada, scope="openid write-repos")["access_token"]: {"ada/hidden"},
        tokens_for(app, rob, scope="openid read-repos")["access_token"]: set(),
        tokens_for(app, bob, scope="openid profile")["access_token"]: set(),
    }
    for token, private in callers.items():
        with api(hub, token) as client:
            assert set(ids(client)) == {"ada/open", *private}
            assert ids(client, "dataset") == ["ada/data"]
            assert ids(client, "space") == []
            assert set(ids(client, search="hidden")) == private
            assert set(ids(client, author="acme")) == private & {"acme/hidden"}
    with api(hub) as anyone:
        assert anyone.get("/api/models", headers={"authorization": "Bearer hf_nonsense"}).status_code == 401
        for address in ("/api/models/tiny", "/api/datasets/tiny", "/api/spaces/x%2Fy"):
            refused = anyone.get(address)
            assert (refused.status_code, refused.headers["x-error-code"]) == (401, "RepoNotFound")
    with api(hub, create_token(hub, bob)) as client:
        refused = client.get("/api/models/tiny")
        assert (refused.status_code, refused.headers["x-error-code"]) == (404, "RepoNotFound")


def test_lists_can_be_sorted_filtered_and_paged(hub: RunningHub) -> None:
    ada = create_user(hub, "Ada")
    create_organization(hub, "acme", ada)
    with api(hub, create_token(hub, ada)) as client:
        names = [f"acme/m{number}" for number in range(7)] + ["Ada/Under_score", "Ada/100-percent"]
        for name in names:
            hub.clock.advance(1)
            create_repo(client, name)
        hub.clock.advance(1)
        create_commit(client, "acme/m3", {"README.md": b"---\ntags: [x]\n---\n"})
        assert client.put("/api/models/acme/m5/settings", json={"gated": "auto"}).status_code == 200
        newest_first = list(reversed(names))
        assert ids(client, sort="createdAt") == ids(client, sort="created_at", direction="-1") == newest_first
        assert ids(client, sort="createdAt", direction="1") == names
        changed = ["acme/m5", "acme/m3"]
        assert set(ids(client)[:2]) == set(ids(client, sort="lastModified")[:2]) == set(changed)
        assert set(ids(client, sort="downloads")) == set(ids(client, sort="trendingScore")) == set(names)
        for query in ({"sort": "size"}, {"limit": "x"}, {"limit": "0"}, {"cursor": "x"}, {"filter": ["t"] * 30}):
            assert client.get("/api/models", params=query).status_code == 400, query
        for sort in ("createdAt", "lastModified", "likes"):
            for direction in ("1", "-1"):
                query = {"sort": sort, "direction": direction}
                assert _paged(client, {**query, "limit": 2}) == ids(client, **query)
        assert ids(client, author="ada") == ids(client, author="ADA") == ids(client, search="ADA/") == newest_first[:2]
        assert ids(client, author="nobody") == []
        # Wildcards of a pattern are literal.
        assert ids(client, search="r_s") == ["Ada/Under_score"]
        for text in ("r%s", "%", "\\", "m_", "'", "é"):
            assert ids(client, search=text) == [], text
        assert ids(client, filter="x") == ids(client, **{"filter[]": "x"}) == ["acme/m3"]
        # All of several, as existing clients send a name and a search text.
        assert ids(client, search=["acme", "m5"]) == ids(client, search=["m5", "acme"]) == ["acme/m5"]
        assert client.get("/api/models", params={"search": ["a"] * 30}).status_code == 400
        assert ids(client, gated="true") == ["acme/m5"]
        assert len(ids(client, gated="False")) == 8


def test_models_are_filtered_by_task(hub: RunningHub) -> None:
    """`list_models(pipeline_tag=...)`, and `listModels({search: {task}})` in JavaScript."""
    with api(hub, create_token(hub, create_user(hub, "ada"))) as client:
        for name, task in (("one", "fill-mask"), ("two", "summarization")):
            create_repo(client, name)
            create_commit(client, f"ada/{name}", {"README.md": f"---\npipeline_tag: {task}\n---\n".encode()})
        assert ids(client, pipeline_tag="fill-mask") == ["ada/one"]
        assert ids(client, pipeline_tag="fill-mask", filter="summarization") == []
        assert set(ids(client, pipeline_tag="")) == {"ada/one", "ada/two"}


def _paged(client: httpx.Client, query: dict[str, Any]) -> list[str]:
    found, address = [], str(httpx.URL("/api/models", params=query))
    while address:
        answer = client.get(address)
        assert len(answer.json()) <= query["limit"]
        found += [repo["id"] for repo in answer.json()]
        link = re.fullmatch(r'<(http://[^>]+)>; rel="next"', answer.headers.get("link", ""))
        address = link[1] if link else ""
    return found


@pytest.mark.one_engine
def test_full_and_expand_select_fields(hub: RunningHub) -> None:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        made = create_repo(ada, "tiny")
        create_commit(ada, "ada/tiny", {"README.md": b"---\nlicense: mit\nlibrary_name: x\n---\n"})
        (plain,) = ada.get("/api/models").json()
        info = ada.get("/api/models/ada/tiny").json()
        assert "cardData" not in plain
        assert {name: info[name] for name in plain} == plain
        for query in ("full=true", "cardData=True", "full=1"):
            assert ada.get(f"/api/models?{query}").json()[0]["cardData"] == {"license": "mit", "library_name": "x"}
        for query in (
            "expand=sha&expand=private",
            "expand[]=sha&expand[]=private",
            "expand=sha&expand=private&expand=no",
        ):
            expected = {"_id": made["id"], "id": "ada/tiny", "sha": info["sha"], "private": False}
            assert ada.get(f"/api/models?{query}").json() == [expected]
            assert ada.get(f"/api/models/ada/tiny?{query}").json() == expected
