"""O43, O44, O57-O59: roles, token scopes, grants and exchanged tokens limit the permissions on repos."""

from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from tests.bed.apps import create_app, token_of
from tests.bed.engines import Engine, settings_for
from tests.bed.exchange import create_exchange_app, exchange_token
from tests.bed.people import api, create_organization, create_token, create_user
from tests.bed.repos import create_commit, create_repo, send_commit, send_lines, text_file
from tests.bed.running_hub import RunningHub, run_hub

from hubgate.server.accounts.organizations import members
from hubgate.server.accounts.roles import Role
from hubgate.server.audit.model import SYSTEM
from hubgate.server.resources import Hub

pytestmark = pytest.mark.one_engine

SCOPES = ("openid", "read-repos", "write-repos", "manage-repos", "contribute-repos", "gated-repos", "write-discussions")
OID = {"oid": "0" * 64, "size": 1}
FILES = {"files": [{"path": "f", "size": 1, "sample": ""}]}

Call = Callable[[httpx.Client, str], httpx.Response]


def _upper(repo: str) -> str:
    namespace, name = repo.split("/")
    return f"{namespace}/{name.upper()}"


def _delete(client: httpx.Client, repo: str) -> httpx.Response:
    namespace, name = repo.split("/")
    return client.request("DELETE", "/api/repos/delete", json={"name": name, "organization": namespace})


READS: dict[str, Call] = {
    "info": lambda client, repo: client.get(f"/api/models/{repo}"),
    "revision": lambda client, repo: client.get(f"/api/models/{repo}/revision/main"),
    "tree": lambda client, repo: client.get(f"/api/models/{repo}/tree/main"),
    "paths": lambda client, repo: client.post(f"/api/models/{repo}/paths-info/main", json={"paths": []}),
    "commits": lambda client, repo: client.get(f"/api/models/{repo}/commits/main"),
    "compare": lambda client, repo: client.get(f"/api/models/{repo}/compare/main"),
    "refs": lambda client, repo: client.get(f"/api/models/{repo}/refs"),
    "events": lambda client, repo: client.get(f"/api/models/{repo}/events"),
    "check": lambda client, repo: client.get(f"/api/models/{repo}/auth-check"),
    "resolve": lambda client, repo: client.get(f"/{repo}/resolve/main/.gitattributes"),
    "raw": lambda client, repo: client.get(f"/{repo}/raw/main/.gitattributes"),
    "fetch": lambda client, repo: client.get(f"/{repo}/info/refs?service=git-upload-pack"),
    "large": lambda client, repo: client.post(
        f"/{repo}.git/info/lfs/objects/batch", json={"operation": "download", "objects": [OID]}
    ),
}
WRITES: dict[str, Call] = {
    "preupload": lambda client, repo: client.post(f"/api/models/{repo}/preupload/main", json=FILES),
    "commit": lambda client, repo: send_commit(client, repo, {"f": b"x"}),
    "branch": lambda client, repo: client.post(f"/api/models/{repo}/branch/b{client.headers['x-try']}"),
    "drop branch": lambda client, repo: client.delete(f"/api/models/{repo}/branch/b{client.headers['x-try']}"),
    "tag": lambda client, repo: client.post(
        f"/api/models/{repo}/tag/main", json={"tag": f"t{client.headers['x-try']}"}
    ),
    "drop tag": lambda client, repo: client.delete(f"/api/models/{repo}/tag/t{client.headers['x-try']}"),
    "squash": lambda client, repo: client.post(f"/api/models/{repo}/super-squash/main"),
    "large": lambda client, repo: client.post(
        f"/{repo}.git/info/lfs/objects/batch", json={"operation": "upload", "objects": [OID]}
    ),
    "discussions": lambda client, repo: client.put(f"/api/models/{repo}/settings", json={"discussionsDisabled": False}),
    "check": lambda client, repo: client.get(f"/api/models/{repo}/auth-check/write"),
    "push": lambda client, repo: client.get(f"/{repo}/info/refs?service=git-receive-pack"),
}
MANAGES: dict[str, Call] = {
    "private": lambda client, repo: client.put(f"/api/models/{repo}/settings", json={"private": True}),
    "gate": lambda client, repo: client.put(f"/api/models/{repo}/settings", json={"gated": False}),
    # To a name that differs in case only, under which the repo is found afterwards.
    "move": lambda client, repo: client.post("/api/repos/move", json={"fromRepo": repo, "toRepo": _upper(repo)}),
    "delete": _delete,
}
_TRY = iter(range(10_000))


def statuses(hub: RunningHub, token: str, repo: str, calls: dict[str, Call]) -> dict[str, int]:
    with api(hub, token) as client:
        client.headers["x-try"] = str(next(_TRY))
        return {name: call(client, repo).status_code for name, call in calls.items()}


def all_are(status: int, calls: dict[str, Call]) -> dict[str, int]:
    return dict.fromkeys(calls, status)


def test_o57_role_and_scope_are_both_required(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    people = {
        role: create_user(hub, name) for role, name in (("read", "rob"), ("contributor", "cat"), ("write", "wim"))
    }
    acme = create_organization(hub, "acme", ada, rob="read", cat="contributor", wim="write")
    app = create_app(hub, scopes=SCOPES)
    with api(hub, create_token(hub, ada)) as admin:
        create_repo(admin, "acme/core", private=True)
    manage = {role: token_of(app, user, "manage-repos", acme) for role, user in people.items()}
    for role in ("read", "contributor"):
        assert statuses(hub, manage[role], "acme/core", READS) == all_are(200, READS)
        assert statuses(hub, manage[role], "acme/core", WRITES | MANAGES) == all_are(403, WRITES | MANAGES)
    with api(hub, manage["contributor"]) as cat, api(hub, manage["read"]) as rob:
        made = create_repo(cat, "acme/own", private=True)
        assert rob.post("/api/repos/create", json={"name": "x", "organization": "acme"}).status_code == 403
    assert statuses(hub, manage["contributor"], "acme/own", WRITES) == all_are(200, WRITES)
    assert statuses(hub, manage["contributor"], "acme/own", MANAGES) == all_are(200, MANAGES)
    assert statuses(hub, token_of(app, people["write"], "write-repos", acme), "acme/core", WRITES) == all_are(
        200, WRITES
    )
    refused = statuses(hub, token_of(app, people["write"], "write-repos", acme), "acme/core", MANAGES)
    assert refused == all_are(403, MANAGES)
    assert statuses(hub, manage["write"], "acme/core", MANAGES) == all_are(200, MANAGES)
    assert made["name"] == "acme/own"


def test_o58_contributing_app_changes_only_repos_it_created(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    one, two = (create_app(hub, name=name, scopes=SCOPES) for name in ("One", "Two"))
    mine, others = token_of(one, ada, "contribute-repos"), token_of(two, ada, "contribute-repos")
    with api(hub, create_token(hub, ada)) as owner, api(hub, mine) as app:
        for name, private in (("own", True), ("own-open", False)):
            create_repo(owner, name, private=private)
        for name, private in (("made", True), ("made-open", False)):
            create_repo(app, name, private=private)
            create_commit(app, f"ada/{name}", {"f": b"1"})
    everything = WRITES | MANAGES
    for token, hidden, shown in ((mine, "own", "own-open"), (others, "made", "made-open")):
        assert statuses(hub, token, f"ada/{hidden}", READS) == all_are(404, READS)
        as_absent = statuses(hub, token, "ada/none", everything)
        assert statuses(hub, token, f"ada/{hidden}", everything) == as_absent
        assert set(as_absent.values()) == {403, 404}
        assert statuses(hub, token, f"ada/{shown}", READS) == all_are(200, READS)
        assert statuses(hub, token, f"ada/{shown}", everything) == all_are(403, everything)
        with api(hub, token) as client:
            proposed = send_commit(client, f"ada/{shown}", {"f": b"2"}, query="?create_pr=1")
            assert (proposed.status_code, "write-discussions" in proposed.headers["x-error-message"]) == (403, True)
            seen = {repo["id"] for repo in client.get("/api/models").json()}
            assert f"ada/{hidden}" not in seen
    assert statuses(hub, mine, "ada/made", READS | WRITES) == all_are(200, READS | WRITES)
    assert statuses(hub, mine, "ada/made", MANAGES) == all_are(403, MANAGES)
    with api(hub, mine) as app:
        assert {repo["id"] for repo in app.get("/api/models").json()} == {"ada/made", "ada/made-open", "ada/own-open"}
        # A repo that its user moves stays the app's; one that the user creates under the old name is not.
        with api(hub, create_token(hub, ada)) as owner:
            assert _delete(owner, "ada/made").status_code == 200
            create_repo(owner, "made", private=True)
        assert app.get("/api/models/ada/made").status_code == 404


def test_o59_gated_repos_scope_opens_no_private_repo_and_no_gate(hub: RunningHub) -> None:
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    app = create_app(hub, scopes=SCOPES)
    with api(hub, create_token(hub, ada)) as owner:
        create_repo(owner, "own", private=True)
        create_repo(owner, "gated", files=[{"path": "README.md", "content": "# x"}, {"path": "f", "content": "x"}])
        for name in ("own", "gated"):
            assert owner.put(f"/api/models/ada/{name}/settings", json={"gated": "manual"}).status_code == 200
    for user in (ada, bob):
        token = token_of(app, user, "gated-repos")
        assert statuses(hub, token, "ada/own", READS) == all_are(404, READS)
        # Gated files are for users with access; that the user owns the repo does not extend the app's scope.
        gated = {"check", "compare", "resolve", "raw", "fetch", "large"}
        expected = {name: 403 if name in gated else 200 for name in READS}
        assert statuses(hub, token, "ada/gated", READS) == expected
        with api(hub, token) as client:
            assert client.get("/ada/gated/resolve/main/README.md").status_code == 200
            assert client.get("/ada/gated/raw/main/README.md").status_code == 403
            assert send_lines(client, "ada/gated", text_file("f")).status_code == 403
    with api(hub, create_token(hub, bob)) as reader, api(hub) as anyone:
        refused, asked = reader.get("/ada/gated/resolve/main/f"), anyone.get("/ada/gated/resolve/nowhere/none")
        assert (refused.status_code, refused.headers["x-error-code"]) == (403, "GatedRepo")
        assert "Access to model ada/gated is restricted and you are not in the authorized list" in refused.text
        assert (asked.status_code, asked.headers["x-error-code"]) == (401, "GatedRepo"), "before anything is looked up"
    assert statuses(hub, create_token(hub, ada), "ada/gated", READS) == all_are(200, READS)


def test_o59_access_to_a_gated_repo_ends_when_the_repo_becomes_private(hub: RunningHub) -> None:
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    token = token_of(create_app(hub, scopes=SCOPES), bob, "gated-repos")
    with api(hub, create_token(hub, ada)) as owner:
        create_repo(owner, "gated")
        assert owner.put("/api/models/ada/gated/settings", json={"gated": "manual"}).status_code == 200
        assert owner.post("/api/models/ada/gated/user-access-request/grant", json={"user": "bob"}).status_code == 200
        assert statuses(hub, token, "ada/gated", READS) == all_are(200, READS)
        assert owner.put("/api/models/ada/gated/settings", json={"private": True}).status_code == 200
        assert statuses(hub, token, "ada/gated", READS) == all_are(404, READS)


def test_organization_that_was_not_granted_is_out_of_reach(hub: RunningHub) -> None:
    ada = create_user(hub, "ada")
    acme, club = (create_organization(hub, name, ada) for name in ("acme", "club"))
    app = create_app(hub, scopes=SCOPES)
    with api(hub, create_token(hub, ada)) as owner:
        for name in ("acme/theirs", "club/theirs", "ada/own"):
            create_repo(owner, name, private=True)
    token = token_of(app, ada, "manage-repos", acme)
    assert statuses(hub, token, "acme/theirs", READS | WRITES) == all_are(200, READS | WRITES)
    assert statuses(hub, token, "club/theirs", READS | WRITES) == all_are(404, READS | WRITES)
    with api(hub, token) as client:
        assert {repo["id"] for repo in client.get("/api/models").json()} == {"acme/theirs", "ada/own"}
        for target, status in (("club", 403), ("acme", 200), ("none", 403)):
            assert client.post("/api/repos/create", json={"name": "x", "organization": target}).status_code == status
        move = {"fromRepo": "ada/own", "toRepo": "club/own"}
        assert client.post("/api/repos/move", json=move).status_code == 403
    assert club.name == "club"


def test_o43_an_exchanged_token_stays_in_its_organization(hub: RunningHub) -> None:
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    acme = create_organization(hub, "acme", ada, bob="write")
    create_organization(hub, "club", bob)
    app = create_exchange_app(hub, acme, scopes=SCOPES)
    with api(hub, create_token(hub, bob)) as owner:
        for name in ("bob/own", "club/theirs", "acme/core"):
            create_repo(owner, name, private=True)
        create_repo(owner, "bob/open")
    token = exchange_token(app, bob.email, scope="manage-repos write-discussions")["access_token"]
    assert statuses(hub, token, "acme/core", READS | WRITES) == all_are(200, READS | WRITES)
    for hidden in ("bob/own", "club/theirs"):
        assert statuses(hub, token, hidden, READS | WRITES) == all_are(404, READS | WRITES)
    assert statuses(hub, token, "bob/open", READS) == all_are(200, READS)
    assert statuses(hub, token, "bob/open", WRITES | MANAGES) == all_are(403, WRITES | MANAGES)
    with api(hub, token) as client:
        assert {repo["id"] for repo in client.get("/api/models").json()} == {"acme/core", "bob/open"}
        for body in ({"name": "x"}, {"name": "x", "organization": "bob"}, {"name": "x", "organization": "club"}):
            assert client.post("/api/repos/create", json=body).status_code == 403
        for target in ("bob/core", "club/core"):
            move = {"fromRepo": "acme/core", "toRepo": target}
            assert client.post("/api/repos/move", json=move).status_code == 403
        assert send_commit(client, "bob/open", {"f": b""}, query="?create_pr=1").status_code == 403


@pytest.mark.parametrize("how", ["demoted", "removed"])
def test_o44_lost_permissions_end_at_the_next_request(engine: Engine, tmp_path: Path, how: str) -> None:
    """The change is made on one machine, the next request is sent to another."""
    settings = settings_for(engine.fresh_url(), tmp_path)
    with run_hub(settings) as here, run_hub(settings) as there:
        ada, bob = create_user(here, "ada"), create_user(here, "bob")
        acme = create_organization(here, "acme", ada, bob="write")
        app = create_exchange_app(here, acme, scopes=SCOPES)
        with api(here, create_token(here, ada)) as admin:
            create_repo(admin, "acme/core", private=True)
        tokens = {
            "personal": create_token(here, bob),
            "consented": token_of(app, bob, "manage-repos", acme),
            "exchanged": exchange_token(app, bob.email, scope="manage-repos")["access_token"],
        }
        for token in tokens.values():
            assert statuses(there, token, "acme/core", READS | WRITES) == all_are(200, READS | WRITES)

        async def work(opened: Hub) -> None:
            if how == "removed":
                await members.remove(opened.accounts, acme, bob, SYSTEM)
            else:
                await members.change_role(opened.accounts, acme, bob, Role.READ, SYSTEM)

        here.call(work)
        for kind, token in tokens.items():
            if how == "demoted":
                assert statuses(there, token, "acme/core", READS) == all_are(200, READS), kind
                # Users who may open a pull request may still upload large files for it.
                expected = all_are(403, WRITES | MANAGES) | ({"large": 200} if kind == "personal" else {})
                assert statuses(there, token, "acme/core", WRITES | MANAGES) == expected, kind
            elif kind == "exchanged":
                # The token is bound to the membership it was exchanged under.
                assert statuses(there, token, "acme/core", READS | WRITES) == all_are(401, READS | WRITES)
            else:
                assert statuses(there, token, "acme/core", READS | WRITES) == all_are(404, READS | WRITES), kind
                with api(there, token) as client:
                    assert client.get("/api/models").json() == [], kind
