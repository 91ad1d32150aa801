"""O69: the names of a namespace remain its own when a repo moves out of it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from tests.bed.apps import approve, create_app, redirect_parameters
from tests.bed.engines import Engine, settings_for
from tests.bed.people import api, browser_of, create_organization, create_token, create_user, submit
from tests.bed.repos import create_commit, create_repo, send_commit, send_large
from tests.bed.running_hub import RunningHub, run_hub
from tests.bed.webhooks import Receiver, create_webhook, run_receiver, settle

from hubgate.server.accounts.model import User
from hubgate.server.audit.model import Actor
from hubgate.server.errors import Forbidden
from hubgate.server.hub.repos import store, transfer
from hubgate.server.hub.repos.model import RepoOwner
from hubgate.server.resources import Hub

OF_ACME = "/api/organizations/acme/settings/redirects"
OWN = "/api/settings/redirects"


@pytest.fixture
def hub_with_receiver(engine: Engine, tmp_path: Path) -> Iterator[RunningHub]:
    with run_hub(settings_for(engine.fresh_url(), tmp_path, egress_allow="127.0.0.0/8")) as started:
        yield started


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with run_receiver() as started:
        yield started


class Scene(NamedTuple):
    """`ada` is the admin of acme, `eve` a contributor who created acme/model there."""

    hub: RunningHub
    ada: User
    eve: User
    admin: httpx.Client
    attacker: httpx.Client
    anyone: httpx.Client

    def leave(self) -> None:
        """The attacker leaves the organization."""
        left = self.attacker.delete("/api/organizations/acme/members/eve")
        assert left.status_code == 200, left.text


@pytest.fixture
def scene(hub: RunningHub) -> Iterator[Scene]:
    ada, eve = create_user(hub, "ada"), create_user(hub, "eve")
    create_organization(hub, "acme", ada, eve="contributor")
    tokens = create_token(hub, ada), create_token(hub, eve)
    with api(hub, tokens[0]) as admin, api(hub, tokens[1]) as attacker, api(hub) as anyone:
        create_repo(attacker, "acme/model")
        create_commit(attacker, "acme/model", {"config.json": b"{}"})
        yield Scene(hub, ada, eve, admin, attacker, anyone)


def move(client: httpx.Client, old: str, new: str, **more: Any) -> httpx.Response:
    return client.post("/api/repos/move", json={"fromRepo": old, "toRepo": new, "type": "model", **more})


def moved(client: httpx.Client, old: str, new: str, **more: Any) -> None:
    answer = move(client, old, new, **more)
    assert answer.status_code == 200, answer.text


def every_way(client: httpx.Client, repo: str) -> dict[str, httpx.Response]:
    """All the ways in which a name is used."""
    asked = {"operation": "download", "objects": [{"oid": "0" * 64, "size": 1}]}
    return {
        "info": client.get(f"/api/models/{repo}"),
        "tree": client.get(f"/api/models/{repo}/tree/main"),
        "resolve": client.head(f"/{repo}/resolve/main/config.json"),
        "raw": client.get(f"/{repo}/raw/main/config.json"),
        "page": client.get(f"/{repo}", headers={"accept": "text/html"}),
        "git": client.get(f"/{repo}.git/info/refs?service=git-upload-pack"),
        "lfs": client.post(f"/{repo}.git/info/lfs/objects/batch", json=asked),
    }


def leads_nowhere(client: httpx.Client, repo: str) -> None:
    for way, answer in every_way(client, repo).items():
        led = answer.status_code in (200, 307) or "eve" in answer.headers.get("location", "")
        assert not led, (way, answer.status_code, answer.headers.get("location"))


def leads_to(client: httpx.Client, old: str, new: str) -> None:
    answer = client.get(f"/api/models/{old}")
    assert (answer.status_code, answer.headers.get("location")) == (307, f"/api/models/{new}")


def listed(client: httpx.Client, path: str = OF_ACME) -> list[tuple[str, str | None]]:
    answer = client.get(path)
    assert answer.status_code == 200, answer.text
    return [(one["name"], one["target"]) for one in answer.json()]


def log_of(admin: httpx.Client, kind: str) -> list[dict[str, Any]]:
    answer = admin.get("/api/organizations/acme/audit-log/export", params={"q": f"type:{kind}"})
    entries: list[dict[str, Any]] = answer.json()
    return entries


@pytest.mark.one_engine
def test_o69_name_leads_nowhere_after_a_contributor_moved_the_repo_out(scene: Scene) -> None:
    moved(scene.attacker, "acme/model", "acme/interim")
    moved(scene.attacker, "acme/interim", "eve/evil")
    scene.leave()
    for client in (scene.admin, scene.attacker, scene.anyone):
        for name in ("acme/model", "acme/interim"):
            leads_nowhere(client, name)
    assert listed(scene.admin) == []
    assert scene.anyone.get("/api/models/eve/evil").status_code == 200
    create_repo(scene.admin, "acme/model")
    assert scene.anyone.get("/api/models/acme/model").json()["id"] == "acme/model"
    (entry,) = [one for one in log_of(scene.admin, "repo.move") if one["data"]["to"] == "eve/evil"]
    assert entry["data"]["redirect"] is False


@pytest.mark.one_engine
@pytest.mark.parametrize("role", ["contributor", "write"])
def test_o69_only_an_admin_may_leave_a_redirect(scene: Scene, role: str) -> None:
    changed = scene.admin.put("/api/organizations/acme/members/eve/role", json={"role": role})
    assert changed.status_code == 200, changed.text
    refused = move(scene.attacker, "acme/model", "eve/evil", leaveRedirect=True)
    assert refused.status_code == 403
    assert "admin" in refused.json()["error"]
    assert scene.anyone.get("/api/models/acme/model").status_code == 200, "nothing was moved"
    assert move(scene.attacker, "acme/model", "eve/evil", leaveRedirect="yes").status_code == 422
    moved(scene.attacker, "acme/model", "acme/renamed", leaveRedirect=True)
    leads_to(scene.anyone, "acme/model", "acme/renamed")


@pytest.mark.one_engine
def test_o69_admin_may_leave_a_redirect_and_reclaim_the_name(scene: Scene) -> None:
    create_organization(scene.hub, "partner", scene.ada)
    moved(scene.admin, "acme/model", "partner/model", leaveRedirect=True)
    leads_to(scene.anyone, "acme/model", "partner/model")
    (allowed,) = log_of(scene.admin, "repo.allow_redirect")
    assert allowed["data"]["redirect"] == "acme/model"
    (shown,) = scene.admin.get(OF_ACME).json()
    assert (shown["type"], shown["outside"], shown["allowedBy"]) == ("model", True, "ada")
    taken = scene.admin.post("/api/repos/create", json={"name": "model", "organization": "acme"})
    assert taken.status_code == 409
    assert "redirect" in taken.json()["error"]
    for other in (scene.attacker, scene.anyone):
        assert other.get(OF_ACME).status_code in (401, 403)
        assert other.delete(f"{OF_ACME}/model/model").status_code in (401, 403)
    assert scene.admin.delete(f"{OF_ACME}/model/model").status_code == 204
    assert scene.admin.delete(f"{OF_ACME}/model/model").status_code == 404
    leads_nowhere(scene.anyone, "acme/model")
    (unlinked,) = log_of(scene.admin, "repo.unlink_redirect")
    assert unlinked["data"]["redirect"] == "acme/model"
    create_repo(scene.admin, "acme/model")
    assert scene.anyone.get("/api/models/partner/model").status_code == 200


@pytest.mark.one_engine
def test_o69_admin_may_move_without_a_redirect(scene: Scene) -> None:
    moved(scene.admin, "acme/model", "ada/model", leaveRedirect=False)
    leads_nowhere(scene.anyone, "acme/model")
    moved(scene.admin, "ada/model", "acme/model", leaveRedirect=False)
    assert scene.anyone.get("/api/models/acme/model").status_code == 200


@pytest.mark.one_engine
def test_o69_current_name_of_a_repo_cannot_be_unlinked(scene: Scene) -> None:
    assert scene.admin.delete(f"{OF_ACME}/model/model").status_code == 404
    assert scene.admin.delete(f"{OF_ACME}/kernel/model").status_code == 404
    assert scene.admin.delete(f"{OF_ACME}/model/%00").status_code in (400, 404)
    assert scene.anyone.get("/api/models/acme/model").status_code == 200


@pytest.mark.one_engine
def test_o69_redirect_ends_when_the_repo_moves_on_to_a_third_namespace(scene: Scene) -> None:
    """The admin of acme allowed a redirect to partner; a contributor of partner cannot point it elsewhere."""
    create_organization(scene.hub, "partner", scene.ada, eve="contributor")
    create_repo(scene.attacker, "partner/model")
    moved(scene.attacker, "partner/model", "partner/old")
    moved(scene.admin, "partner/old", "acme/from-partner", leaveRedirect=True)
    leads_to(scene.anyone, "partner/model", "acme/from-partner")
    moved(scene.admin, "acme/from-partner", "acme/renamed")
    leads_to(scene.anyone, "partner/model", "acme/renamed")
    changed = scene.admin.put("/api/organizations/acme/members/eve/role", json={"role": "write"})
    assert changed.status_code == 200
    moved(scene.attacker, "acme/renamed", "eve/evil")
    for name in ("partner/model", "partner/old", "acme/from-partner", "acme/renamed"):
        leads_nowhere(scene.anyone, name)
    ended = scene.admin.get("/api/organizations/partner/audit-log/export?q=type:repo.unlink_redirect").json()
    assert {entry["data"]["redirect"] for entry in ended} == {"partner/model", "partner/old"}
    assert {entry["author"]["type"] for entry in ended} == {"system"}, "who moved it elsewhere is not partner's to know"


def test_o69_renamed_namespace_retains_its_names(scene: Scene) -> None:
    browser = browser_of(scene.hub, scene.ada)
    at = "/organizations/acme/settings"
    with browser:
        assert submit(browser, f"{at}/profile", f"{at}/rename", name="apex").status_code == 303
    leads_to(scene.anyone, "acme/model", "apex/model")
    moved(scene.attacker, "acme/model", "eve/evil")
    for name in ("acme/model", "apex/model"):
        leads_nowhere(scene.anyone, name)


@pytest.mark.one_engine
def test_o69_apps_cannot_leave_a_redirect(scene: Scene) -> None:
    """A redirect would outlive the app's grant."""
    app = create_app(scene.hub, scene.eve, scopes=("openid", "manage-repos"))
    acme = scene.admin.get("/api/whoami-v2").json()["orgs"][0]["id"]
    for name in ("one", "two"):
        create_repo(scene.admin, name)
    with browser_of(scene.hub, scene.ada) as browser:
        code = redirect_parameters(approve(browser, app.address(), orgs=[acme]))["code"]
    with api(scene.hub, app.redeem(code).json()["access_token"]) as script:
        moved(script, "ada/one", "ada/renamed", leaveRedirect=True)
        leads_to(scene.anyone, "ada/one", "ada/renamed")
        for old, new in (("ada/two", "acme/two"), ("acme/model", "ada/model")):
            assert move(script, old, new, leaveRedirect=True).status_code == 403
            moved(script, old, new)
            leads_nowhere(scene.anyone, old)
        for path in (OWN, OF_ACME):
            assert script.get(path).status_code == 403
            assert script.delete(f"{path}/model/one").status_code == 403


@pytest.mark.one_engine
def test_o69_user_may_leave_or_end_redirects_in_their_own_namespace(scene: Scene) -> None:
    create_repo(scene.admin, "one")
    moved(scene.admin, "ada/one", "acme/one")
    leads_to(scene.anyone, "ada/one", "acme/one")
    assert listed(scene.admin, OWN) == [("ada/one", "acme/one")]
    assert listed(scene.attacker, OWN) == []
    assert scene.attacker.delete(f"{OWN}/model/one").status_code == 404
    assert scene.admin.delete(f"{OWN}/model/ONE").status_code == 204
    leads_nowhere(scene.anyone, "ada/one")
    create_repo(scene.admin, "one")


@pytest.mark.one_engine
def test_o69_list_does_not_reveal_a_private_repo_elsewhere(scene: Scene) -> None:
    create_organization(scene.hub, "partner", scene.eve, ada="contributor")
    moved(scene.admin, "acme/model", "partner/model", leaveRedirect=True)
    assert listed(scene.admin) == [("acme/model", "partner/model")]
    assert scene.attacker.put("/api/models/partner/model/settings", json={"private": True}).status_code == 200
    moved(scene.attacker, "partner/model", "partner/secret-plan")
    assert scene.attacker.delete("/api/organizations/partner/members/ada").status_code == 200
    assert listed(scene.admin) == [("acme/model", None)]
    leads_nowhere(scene.admin, "acme/model")
    with browser_of(scene.hub, scene.ada) as browser:
        page = browser.get("/organizations/acme/settings/redirects")
        assert (page.status_code, "secret-plan" in page.text) == (200, False)
        assert "acme/model" in page.text
    deleted = scene.attacker.request("DELETE", "/api/repos/delete", json={"name": "partner/secret-plan"})
    assert deleted.status_code == 200
    assert listed(scene.admin) == [], "a redirect ends with its repo"
    create_repo(scene.admin, "acme/model")


@pytest.mark.one_engine
def test_o69_page_lets_admins_leave_and_unlink_redirects(scene: Scene) -> None:
    tick = 'name="leave_redirect"'
    create_organization(scene.hub, "partner", scene.ada, eve="contributor")
    with browser_of(scene.hub, scene.ada) as admin, browser_of(scene.hub, scene.eve) as contributor:
        at = "/acme/model/settings"
        assert tick in admin.get(at).text
        assert tick not in contributor.get(at).text
        forged = submit(contributor, at, f"{at}/move", owner="eve", name="evil", leave_redirect="on")
        assert forged.status_code == 403
        done = submit(admin, at, f"{at}/move", owner="partner", name="one", leave_redirect="on")
        assert done.status_code == 303
        leads_to(scene.anyone, "acme/model", "partner/one")
        settings = "/organizations/acme/settings/redirects"
        assert contributor.get(settings).status_code == 403
        unlinked = submit(admin, settings, f"{settings}/model/model/unlink")
        assert unlinked.status_code == 303
        leads_nowhere(scene.anyone, "acme/model")
        again = submit(admin, "/partner/one/settings", "/partner/one/settings/move", owner="ada", name="two")
        assert again.status_code == 303
        leads_nowhere(scene.anyone, "partner/one")
        assert "No redirects" in admin.get("/settings/redirects").text


@pytest.mark.one_engine
def test_o69_uploads_to_the_old_name_do_not_reach_the_moved_repo(scene: Scene) -> None:
    moved(scene.attacker, "acme/model", "eve/evil")
    assert send_commit(scene.admin, "acme/model", {"f": b"secret"}).status_code == 404
    assert send_commit(scene.attacker, "acme/model", {"f": b"x"}).status_code == 404
    create_repo(scene.admin, "acme/model")
    oid = send_large(scene.admin, "acme/model", b"large" * 100)
    asked = {"operation": "download", "objects": [{"oid": oid, "size": 500}]}
    answer = scene.attacker.post("/eve/evil.git/info/lfs/objects/batch", json=asked).json()
    assert "actions" not in answer["objects"][0]


@pytest.mark.one_engine
def test_o69_webhooks_do_not_follow_a_repo_out_of_its_namespace(
    hub_with_receiver: RunningHub, receiver: Receiver
) -> None:
    hub = hub_with_receiver
    ada, eve, bob = (create_user(hub, name) for name in ("ada", "eve", "bob"))
    create_organization(hub, "acme", ada, eve="contributor")
    tokens = [create_token(hub, user) for user in (ada, eve, bob)]
    with api(hub, tokens[0]) as admin, api(hub, tokens[1]) as attacker, api(hub, tokens[2]) as watcher:
        for name in ("model", "other"):
            create_repo(attacker, f"acme/{name}")
        settle(hub)
        webhook = create_webhook(watcher, receiver.url, "model:acme/model", "model:acme/other")
        moved(attacker, "acme/model", "eve/evil")
        create_commit(attacker, "eve/evil", {"a": b"a"})
        settle(hub)
        moved(admin, "acme/other", "ada/other", leaveRedirect=True)
        create_commit(admin, "ada/other", {"a": b"a"})
        settle(hub)
        assert admin.delete(f"{OF_ACME}/model/other").status_code == 204
        create_commit(admin, "ada/other", {"b": b"b"})
        create_repo(admin, "acme/model")
        settle(hub)
        watched = watcher.get(f"/api/settings/webhooks/{webhook['id']}").json()["webhook"]["watched"]
    assert [each["name"] for each in watched] == ["acme/model", "acme/other"]
    told = [f"{one.kind} {one.json['repo']['name']}" for one in receiver.received]
    followed = ["repo move acme/other", "repo.content update ada/other"]
    assert told == ["repo move acme/model", *followed], "neither the repo elsewhere nor the next one of that name"


def test_o69_admin_demoted_during_the_request_leaves_no_redirect(scene: Scene) -> None:
    """The request was authorized as an admin's; the transaction checks again."""

    async def work(opened: Hub) -> None:
        repo = await store.named(opened.repos.db, "model", "acme", "model")
        assert repo is not None
        to, actor = RepoOwner("user", scene.eve.id, "eve"), Actor("eve", scene.eve.id)
        with pytest.raises(Forbidden, match="no longer an admin of acme"):
            await transfer.move(opened.repos, repo, to, "evil", actor, leave_redirect=True)

    scene.hub.call(work)
    assert scene.anyone.get("/api/models/acme/model").status_code == 200


def test_o69_redirect_from_before_the_rule_is_retained_marked_and_can_be_unlinked(scene: Scene) -> None:
    moved(scene.admin, "acme/model", "ada/model")

    async def as_before(opened: Hub) -> None:
        forget = "UPDATE repo_names SET left_at = NULL, allowed_by = NULL"
        await opened.db.write(lambda tx: tx.exec(forget, {}))

    scene.hub.call(as_before)
    leads_to(scene.anyone, "acme/model", "ada/model")
    (shown,) = scene.admin.get(OF_ACME).json()
    assert (shown["outside"], shown["allowedBy"], shown["createdAt"]) == (True, None, None)
    with browser_of(scene.hub, scene.ada) as browser:
        assert (
            "Created before redirects required permission" in browser.get("/organizations/acme/settings/redirects").text
        )
    assert scene.admin.delete(f"{OF_ACME}/model/model").status_code == 204
    leads_nowhere(scene.anyone, "acme/model")


def test_o69_redirects_are_listed_in_pages(scene: Scene) -> None:
    for number in range(3):
        create_repo(scene.admin, f"acme/m{number}")
        moved(scene.admin, f"acme/m{number}", f"acme/n{number}")
    first = scene.admin.get(f"{OF_ACME}?limit=2")
    assert [one["name"] for one in first.json()] == ["acme/m0", "acme/m1"]
    assert [one["name"] for one in scene.admin.get(first.links["next"]["url"]).json()] == ["acme/m2"]
    assert scene.admin.get(f"{OF_ACME}?cursor=x").status_code == 400
