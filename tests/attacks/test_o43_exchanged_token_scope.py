"""O43, O57: an exchanged token is confined to its organization, on every route of repos.

Bob is a member of acme, whose app has the token. He is also admin of club and owns repos.
"""

import base64
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count

import httpx
import pytest
from tests.bed.apps import create_app, tokens_for
from tests.bed.exchange import create_exchange_app, exchange_token
from tests.bed.people import api, create_organization, create_token, create_user
from tests.bed.repos import create_commit, create_repo, send_commit
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts import store
from hubgate.server.accounts.model import User
from hubgate.server.scopes import SCOPE_NAMES

pytestmark = pytest.mark.one_engine

SCOPES = tuple(sorted(SCOPE_NAMES))
NUMBERS = count()


@dataclass(frozen=True)
class World:
    hub: RunningHub
    token: str

    def program(self) -> httpx.Client:
        return api(self.hub, self.token)


Build = Callable[..., World]


@pytest.fixture
def build(hub: RunningHub) -> Build:
    def world(role: str, scopes: str = " ".join(SCOPES)) -> World:
        ada, bob, eve = (create_user(hub, name) for name in ("ada", "bob", "eve"))
        acme = create_organization(hub, "acme", ada, bob=role)
        create_organization(hub, "club", bob)
        create_organization(hub, "foreign", eve)
        for user, spaces in ((ada, ("acme",)), (bob, ("bob", "club")), (eve, ("foreign",))):
            with api(hub, create_token(hub, user)) as script:
                for space in spaces:
                    for repo, private in ((f"{space}/secret", True), (f"{space}/open", False)):
                        for kind in ("model", "dataset"):
                            create_repo(script, repo, kind, private=private)
                            create_commit(script, repo, {"file.txt": b"text\n"}, repo_type=kind)
        client = create_exchange_app(hub, acme, scopes=SCOPES)
        return World(hub, exchange_token(client, "bob@example.org", scope=scopes)["access_token"])

    return world


def reads(world: World, repo: str, kind: str = "model") -> dict[str, int]:
    folder = "" if kind == "model" else f"{kind}s/"
    api_of, files = f"/api/{kind}s/{repo}", f"/{folder}{repo}"
    with world.program() as program:
        answers = {
            "info": program.get(api_of),
            "revision": program.get(f"{api_of}/revision/main"),
            "tree": program.get(f"{api_of}/tree/main"),
            "paths": program.post(f"{api_of}/paths-info/main", json={"paths": ["file.txt"]}),
            "commits": program.get(f"{api_of}/commits/main"),
            "refs": program.get(f"{api_of}/refs"),
            "events": program.get(f"{api_of}/events"),
            "auth-check": program.get(f"{api_of}/auth-check"),
            "resolve": program.get(f"{files}/resolve/main/file.txt"),
            "raw": program.get(f"{files}/raw/main/file.txt"),
            "fetch": _git(world, files, "upload-pack"),
        }
    return {name: answer.status_code for name, answer in answers.items()}


def _git(world: World, files: str, service: str) -> httpx.Response:
    """git's first request, with the token as its password."""
    basic = base64.b64encode(f"bob:{world.token}".encode()).decode()
    with world.hub.client(headers={"authorization": f"Basic {basic}"}) as git:
        return git.get(f"{files}.git/info/refs", params={"service": f"git-{service}"})


def writes(world: World, repo: str, kind: str = "model") -> dict[str, int]:
    """Deletion is last."""
    namespace, _, own = repo.partition("/")
    folder = "" if kind == "model" else f"{kind}s/"
    api_of, files = f"/api/{kind}s/{repo}", f"/{folder}{repo}"
    asked = {"operation": "upload", "transfers": ["basic"], "objects": [{"oid": "0" * 64, "size": 1}]}
    new = f"new{next(NUMBERS)}"
    with world.program() as program:
        answers = {
            "auth-check": program.get(f"{api_of}/auth-check/write"),
            "preupload": program.post(f"{api_of}/preupload/main", json={"files": []}),
            "commit": send_commit(program, repo, {f"{new}.txt": b"new"}, repo_type=kind),
            "branch": program.post(f"{api_of}/branch/{new}", json={}),
            "tag": program.post(f"{api_of}/tag/main", json={"tag": f"v{new}"}),
            "squash": program.post(f"{api_of}/super-squash/main", json={"message": "all"}),
            "settings": program.put(f"{api_of}/settings", json={"discussionsDisabled": True}),
            "gate": program.put(f"{api_of}/settings", json={"gated": False}),
            "push": _git(world, files, "receive-pack"),
            "upload": program.post(f"{files}.git/info/lfs/objects/batch", json=asked),
            "move": program.post(
                "/api/repos/move", json={"fromRepo": repo, "toRepo": f"{namespace}/{new}", "type": kind}
            ),
        }
        left = new if answers["move"].status_code == 200 else own
        gone = {"name": left, "organization": namespace, "type": kind}
        answers["delete"] = program.request("DELETE", "/api/repos/delete", json=gone)
    return {name: answer.status_code for name, answer in answers.items()}


def every(statuses: dict[str, int]) -> set[int]:
    return set(statuses.values())


@pytest.mark.parametrize("role", ["read", "contributor", "write", "admin"])
def test_o43_inside_the_organization_the_role_decides(build: Build, role: str) -> None:
    """O57 too: a reader deletes nothing, no matter which scopes the token has."""
    world = build(role)
    for kind in ("model", "dataset"):
        for repo in ("acme/open", "acme/secret"):
            assert every(reads(world, repo, kind)) == {200}, (repo, kind)
            want = 200 if role in ("write", "admin") else 403
            found = writes(world, repo, kind)
            # Users who may open pull requests may upload large files for them.
            assert found == {**dict.fromkeys(found, want), "upload": 200}
    with world.program() as program:
        made = program.post("/api/repos/create", json={"name": "made", "organization": "acme", "private": True})
    assert made.status_code == (403 if role == "read" else 200)
    if role == "contributor":
        found = writes(world, "acme/made")
        assert every(found) == {200}, "what they created is theirs to change"


def test_o43_private_repos_outside_the_organization_are_not_found(build: Build) -> None:
    """The member's own, those of an organization where they are admin, and others': as if they did not exist."""
    world = build("admin")
    for repo in ("bob/secret", "club/secret", "foreign/secret", "bob/nothing", "foreign/nothing", "nobody/nothing"):
        for kind in ("model", "dataset"):
            assert every(reads(world, repo, kind)) == {404}, repo
            assert every(writes(world, repo, kind)) == {404}, repo
    with world.program() as program:
        listed = [repo["id"] for repo in program.get("/api/models?limit=100").json()]
        assert sorted(listed) == ["acme/open", "acme/secret", "bob/open", "club/open", "foreign/open"]
        for author in ("bob", "club", "foreign"):
            found = program.get(f"/api/models?author={author}").json()
            assert [repo["id"] for repo in found] == [f"{author}/open"]
            assert program.get(f"/api/datasets?author={author}&search=secret").json() == []


def test_o43_public_repos_outside_the_organization_are_read_only(build: Build) -> None:
    world = build("admin")
    for repo in ("bob/open", "club/open", "foreign/open"):
        assert every(reads(world, repo)) == {200}, repo
        found = writes(world, repo)
        assert every(found) == {403}, found
        assert every(reads(world, repo)) == {200}, "and there it still is"


def test_o43_repos_cannot_be_created_or_moved_outside_the_organization(build: Build) -> None:
    world = build("admin")
    with world.program() as program:
        for space in ("bob", "club", "foreign", None):
            made = program.post("/api/repos/create", json={"name": "made", "organization": space})
            assert made.status_code in (403, 404), (space, made.text)
        for source, target in (
            ("acme/open", "bob/taken"),
            ("acme/secret", "club/taken"),
            ("bob/open", "acme/taken"),
            ("club/open", "acme/taken"),
        ):
            asked = {"fromRepo": source, "toRepo": target, "type": "model"}
            assert program.post("/api/repos/move", json=asked).status_code in (403, 404), source
        asked = {"fromRepo": "bob/secret", "toRepo": "acme/taken", "type": "model"}
        assert program.post("/api/repos/move", json=asked).status_code == 404
        assert program.get("/api/models/acme/open").status_code == 200
        assert program.get("/api/models/acme/taken").status_code == 404


PERSONAL = (
    ("GET", "/api/settings/tokens"),
    ("POST", "/api/settings/tokens"),
    ("GET", "/api/settings/sessions"),
    ("GET", "/api/settings/applications"),
    ("POST", "/api/settings/applications"),
    ("GET", "/api/settings/connected-apps"),
    ("GET", "/api/organizations/acme/members"),
    ("PUT", "/api/organizations/acme/members/ada/role"),
    ("DELETE", "/api/organizations/acme/members/ada"),
    ("GET", "/api/organizations/acme/settings/applications"),
    ("POST", "/api/organizations/acme/settings/applications"),
    ("GET", "/api/organizations/acme/audit-log"),
    ("GET", "/api/organizations/acme/audit-log/export"),
    ("GET", "/api/organizations/club/members"),
    ("GET", "/api/organizations/club/settings/applications"),
    ("GET", "/api/organizations/club/audit-log/export"),
    ("GET", "/api/settings/webhooks"),
    ("POST", "/api/settings/webhooks"),
)


def test_o43_settings_are_forbidden_for_every_role(build: Build) -> None:
    """The user's own, the organization's, and those of another organization. A cookie is ignored."""
    world = build("admin")
    with world.program() as program:
        for method, path in PERSONAL:
            answer = program.request(method, path, json={} if method in ("POST", "PUT") else None)
            assert answer.status_code == 403, (method, path, answer.text)
        program.cookies.set("token", world.token)
        assert program.get("/settings/profile").status_code == 303


def test_o43_whoami_and_userinfo_name_only_the_organization(build: Build) -> None:
    world = build("read")
    with world.program() as program:
        whoami, userinfo = program.get("/api/whoami-v2").json(), program.get("/oauth/userinfo").json()
    assert (whoami["name"], [org["name"] for org in whoami["orgs"]]) == ("bob", ["acme"])
    assert whoami["orgs"][0]["roleInOrg"] == "read"
    for key in ("orgs", "organizations"):
        assert [org["preferred_username"] for org in userinfo[key]] == ["acme"]
    for said in (whoami, userinfo):
        assert not {"canPay", "billingMode"} & said.keys(), "how the member pays is not the organization's to know"
        assert "canPay" in said["orgs"][0], "how the organization pays is"


@pytest.mark.parametrize(
    ("scopes", "public", "private", "written"),
    [
        ("openid profile email", 200, 404, 403),
        ("gated-repos read-collections", 200, 404, 403),
        ("contribute-repos", 200, 404, 403),
        ("read-repos", 200, 200, 403),
        ("write-repos", 200, 200, 200),
    ],
)
def test_o43_scopes_limit_the_token_inside_the_organization(
    build: Build, scopes: str, public: int, private: int, written: int
) -> None:
    world = build("admin", scopes)
    assert every(reads(world, "acme/open")) == {public}
    assert every(reads(world, "acme/secret")) == {private}
    with world.program() as program:
        assert send_commit(program, "acme/open", {"a.txt": b"a"}).status_code == written
        gone = program.request("DELETE", "/api/repos/delete", json={"name": "open", "organization": "acme"})
        assert gone.status_code == 403, "that takes manage-repos"


def test_o57_manage_scope_does_not_let_a_reader_delete(hub: RunningHub) -> None:
    ada, bob = create_user(hub, "ada"), create_user(hub, "bob")
    acme = create_organization(hub, "acme", ada, bob="read")
    with api(hub, create_token(hub, ada)) as script:
        create_repo(script, "acme/open")
        create_repo(script, "acme/secret", private=True)
    client = create_app(hub, ada, scopes=("openid", "manage-repos"))
    token = tokens_for(client, bob, orgIds=acme.id)["access_token"]
    with api(hub, token) as program:
        for name in ("open", "secret"):
            gone = program.request("DELETE", "/api/repos/delete", json={"name": name, "organization": "acme"})
            assert gone.status_code in (403, 404), gone.text
            assert program.get(f"/api/models/acme/{name}").status_code in (200, 404)
    with api(hub, create_token(hub, ada)) as script:
        assert [script.get(f"/api/models/acme/{name}").status_code for name in ("open", "secret")] == [200, 200]


def test_o43_only_webhooks_of_the_organization_are_reachable(build: Build) -> None:
    """By role and scope; the member's own, and those of other organizations, are out of reach."""
    world = build("admin")
    spaces = {"acme": 200, "club": 403, "foreign": 403, "nobody": 404}
    with world.program() as program:
        for space, want in spaces.items():
            path = f"/api/organizations/{space}/settings/webhooks"
            # A webhook may watch repos of others: it reports only what the organization may read.
            made = program.post(path, json=hook("user:bob", "org:club", f"org:{space}"))
            assert made.status_code == want, (space, made.text)
            assert program.get(path).status_code == want, space
            found = made.json()["webhook"]["id"] if want == 200 else "0" * 24
            one = f"{path}/{found}"
            tails = (
                ("GET", ""),
                ("POST", ""),
                ("POST", "/disable"),
                ("POST", "/enable"),
                ("GET", "/logs"),
                ("DELETE", ""),
            )
            for method, tail in tails:
                answer = program.request(method, one + tail, json={} if method == "POST" else None)
                assert answer.status_code == want, (space, method, tail)


def test_o43_members_own_webhook_is_not_found(build: Build) -> None:
    """By any route."""
    world = build("admin")
    with api(world.hub, create_token(world.hub, user_named(world, "bob"))) as bob:
        mine = bob.post("/api/settings/webhooks", json=hook("user:bob")).json()["webhook"]
        clubs = bob.post("/api/organizations/club/settings/webhooks", json=hook("org:club")).json()["webhook"]
    with world.program() as program:
        for webhook in (mine, clubs):
            for method, tail in (("GET", ""), ("POST", ""), ("DELETE", ""), ("POST", "/test"), ("GET", "/logs")):
                body = {} if method == "POST" else None
                at_home = program.request(method, f"/api/settings/webhooks/{webhook['id']}{tail}", json=body)
                there = program.request(
                    method, f"/api/organizations/acme/settings/webhooks/{webhook['id']}{tail}", json=body
                )
                assert (at_home.status_code, there.status_code) == (403, 404), (method, tail)


@pytest.mark.parametrize(("role", "scopes"), [("write", " ".join(SCOPES)), ("admin", "manage-repos profile")])
def test_o43_webhooks_require_the_role_and_the_scope(build: Build, role: str, scopes: str) -> None:
    world = build(role, scopes)
    path = "/api/organizations/acme/settings/webhooks"
    with world.program() as program:
        assert [program.get(path).status_code, program.post(path, json=hook("org:acme")).status_code] == [403, 403]


def hook(*watched: str) -> dict[str, object]:
    named = [dict(zip(("type", "name"), one.split(":"), strict=True)) for one in watched]
    return {"url": "https://ci.example/", "watched": named}


def user_named(world: World, name: str) -> User:
    found = world.hub.call(lambda opened: store.user_by_name(opened.db, name))
    assert found is not None
    return found
