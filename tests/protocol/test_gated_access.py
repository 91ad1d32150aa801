"""Access to gated repos: asking, decisions of the owner, and every way to read the files."""

from collections.abc import Callable, Iterator

import httpx
import pytest
from tests.bed.apps import create_app, token_of
from tests.bed.concurrency import run_concurrently
from tests.bed.exchange import create_exchange_app, exchange_token
from tests.bed.gated_repo import AT, REPO, Scene, ask, create_scene, gate, handle, listed
from tests.bed.people import (
    PASSWORD,
    api,
    browser_of,
    create_organization,
    create_token,
    create_user,
    link_in,
    mails_to,
    submit,
)
from tests.bed.repos import create_commit, create_repo, send_large
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts import own_account
from hubgate.server.audit.model import SYSTEM
from hubgate.server.errors import NotFound
from hubgate.server.hub.gating import access_requests
from hubgate.server.hub.repos import store as repo_store
from hubgate.server.resources import Hub


@pytest.fixture
def scene(hub: RunningHub) -> Iterator[Scene]:
    with create_scene(hub) as created:
        yield created


def statuses(client: httpx.Client, oid: str) -> dict[str, int]:
    batch = {"operation": "download", "objects": [{"oid": oid, "size": 5}]}
    calls: dict[str, Callable[[], httpx.Response]] = {
        "check": lambda: client.get(f"/api/models/{REPO}/auth-check"),
        "resolve": lambda: client.get(f"/{REPO}/resolve/main/weights.txt"),
        "raw": lambda: client.get(f"/{REPO}/raw/main/weights.txt"),
        "fetch": lambda: client.get(f"/{REPO}/info/refs?service=git-upload-pack"),
        "pack": lambda: client.post(
            f"/{REPO}/git-upload-pack",
            content=b"0000",
            headers={"content-type": "application/x-git-upload-pack-request"},
        ),
        "large": lambda: client.post(f"/{REPO}.git/info/lfs/objects/batch", json=batch),
    }
    return {name: call().status_code for name, call in calls.items()}


def every(status: int) -> dict[str, int]:
    return dict.fromkeys(("check", "resolve", "raw", "fetch", "pack", "large"), status)


@pytest.mark.one_engine
def test_accepted_request_opens_every_way_to_read_the_files(scene: Scene) -> None:
    oid = send_large(scene.ada, REPO, b"large")
    assert statuses(scene.bob, oid) == every(200)
    gate(scene)
    assert statuses(scene.bob, oid) == every(403)
    assert statuses(scene.visitor, oid) == every(401)
    assert statuses(scene.rob, oid) == every(200)
    assert ask(scene.bob).json() == {"status": "pending"}
    assert statuses(scene.bob, oid) == every(403)
    assert handle(scene.wim, "accepted").json() == {}
    assert statuses(scene.bob, oid) == every(200)
    with browser_of(scene.hub, scene.bob_user) as browser:
        assert "secret weights" in browser.get(f"/{REPO}/blob/main/weights.txt").text
    assert handle(scene.ada, "rejected").status_code == 200
    assert statuses(scene.bob, oid) == every(403)
    with browser_of(scene.hub, scene.bob_user) as browser:
        assert "secret weights" not in browser.get(f"/{REPO}/blob/main/weights.txt").text
    # Reading the files does not include writing.
    assert handle(scene.ada, "accepted").status_code == 200
    assert scene.bob.get(f"/api/models/{REPO}/auth-check/write").status_code == 403


@pytest.mark.one_engine
def test_access_does_not_open_a_private_repo_or_another_repo(scene: Scene) -> None:
    gate(scene)
    assert scene.ada.post(f"{AT}/grant", json={"user": "bob"}).status_code == 200
    create_repo(scene.ada, "acme/other", files=[{"path": "f", "content": "x"}])
    assert scene.ada.put("/api/models/acme/other/settings", json={"gated": "manual"}).status_code == 200
    assert scene.bob.get("/acme/other/resolve/main/f").status_code == 403
    assert scene.ada.put(f"/api/models/{REPO}/settings", json={"private": True}).status_code == 200
    assert scene.bob.get(f"/{REPO}/resolve/main/weights.txt").status_code == 404
    assert scene.bob.get(f"/api/models/{REPO}").status_code == 404


@pytest.mark.one_engine
def test_automatic_gate_accepts_at_once(scene: Scene) -> None:
    gate(scene, "auto")
    asked = ask(scene.bob, Country="Norway")
    assert (asked.status_code, asked.json()) == (200, {"status": "accepted"})
    assert scene.bob.get(f"/{REPO}/resolve/main/weights.txt").text == "secret weights"
    (found,) = scene.ada.get(f"{AT}/accepted").json()
    assert (found["status"], found["fields"], found["user"]["email"]) == (
        "accepted",
        {"Country": "Norway"},
        "bob@example.org",
    )
    assert {"requestId", "timestamp", "reviewedAt"} <= set(found)
    assert "grantedBy" not in found


@pytest.mark.one_engine
def test_form_that_asks_for_access_also_accepts_a_token(scene: Scene) -> None:
    """Scripts post answers to the address of the page's form, as JSON or as a form, without its CSRF field."""
    gate(scene)
    at = f"/{REPO}/ask-access"
    asked = scene.bob.post(at, json={"Country": "Norway"})
    assert (asked.status_code, asked.headers["location"]) == (303, f"/{REPO}")
    assert scene.ada.get(f"{AT}/pending").json()[0]["fields"] == {"Country": "Norway"}
    assert scene.bob.post(f"{AT}/cancel").status_code == 200
    assert scene.bob.post(at, data={"Country": "Chile"}).status_code == 303
    assert scene.ada.get(f"{AT}/pending").json()[0]["fields"] == {"Country": "Chile"}
    assert scene.bob.post(f"{AT}/cancel").status_code == 200
    assert scene.visitor.post(at, json={}).status_code in (401, 403, 415)
    with browser_of(scene.hub, scene.bob_user) as browser:
        # A session needs the CSRF field, and an invalid token is not replaced by the session.
        assert browser.post(at, data={}).status_code == 403
        assert browser.post(at, data={}, headers={"authorization": "Bearer hf_invalid"}).status_code == 401
        # Other forms do not accept tokens.
        assert scene.bob.post(f"{at}/cancel").status_code == 403
    app = create_app(scene.hub, scopes=("openid", "manage-repos"))
    with api(scene.hub, token_of(app, scene.bob_user, "manage-repos")) as client:
        assert client.post(at, json={}).status_code == 403
    assert listed(scene, "pending") == []


def test_asking_again_changes_nothing(scene: Scene) -> None:
    gate(scene)
    ask(scene.bob)
    gate(scene, "auto")
    assert ask(scene.bob).json() == {"status": "pending"}
    handle(scene.ada, "rejected", user="bob", rejectionReason="Not now")
    assert ask(scene.bob).json() == {"status": "rejected"}
    (found,) = scene.ada.get(f"{AT}/rejected").json()
    assert (found["rejectionReason"], found["grantedBy"]) == ("Not now", "ada")
    # Only the owner lets a rejected user ask again.
    assert handle(scene.ada, "reset").status_code == 200
    assert ask(scene.bob).json() == {"status": "accepted"}


@pytest.mark.one_engine
def test_pending_request_is_withdrawn_by_its_user(scene: Scene) -> None:
    gate(scene)
    assert scene.bob.post(f"{AT}/cancel").status_code == 404
    ask(scene.bob)
    cancelled = scene.bob.post(f"{AT}/cancel")
    assert (cancelled.status_code, cancelled.json()) == (200, {"ok": True})
    assert listed(scene, "pending") == []
    ask(scene.bob)
    handle(scene.ada, "accepted")
    assert scene.bob.post(f"{AT}/cancel").status_code == 404


def test_every_decision_can_be_changed(scene: Scene) -> None:
    gate(scene)
    ask(scene.bob)
    (request_id,) = (found["requestId"] for found in scene.ada.get(f"{AT}/pending").json())
    for status in ("rejected", "accepted", "pending", "accepted", "rejected", "pending"):
        assert handle(scene.ada, status, requestId=request_id).status_code == 200
        assert listed(scene, status) == ["bob"]
        assert handle(scene.ada, status, userId=scene.bob_user.id).status_code == 404
    assert handle(scene.ada, "accepted", user="nobody").status_code == 404
    assert handle(scene.ada, "accepted", user="rob").status_code == 404
    assert handle(scene.ada, "rejected", user="bob", rejectionReason="x" * 201).status_code == 422
    assert handle(scene.ada, "done").status_code == 422


@pytest.mark.one_engine
def test_granted_user_does_not_share_an_email_address(scene: Scene) -> None:
    gate(scene)
    granted = scene.ada.post(f"{AT}/grant", json={"user": "BOB"})
    assert (granted.status_code, granted.json()) == (200, {})
    assert scene.ada.post(f"{AT}/grant", json={"userId": scene.bob_user.id}).status_code == 400
    assert scene.ada.post(f"{AT}/grant", json={"user": "nobody"}).status_code == 404
    (found,) = scene.ada.get(f"{AT}/accepted").json()
    assert "email" not in found["user"]
    assert found["grantedBy"] == "ada"
    handle(scene.ada, "rejected")
    assert scene.ada.post(f"{AT}/grant", json={"user": "bob"}).status_code == 200
    assert listed(scene, "accepted") == ["bob"]


@pytest.mark.one_engine
def test_unverified_email_address_is_not_shown(scene: Scene) -> None:
    """Anyone can join with the address of someone whom the writers would trust."""
    gate(scene)
    mallory = create_user(scene.hub, "mallory", verified=False)
    with api(scene.hub, create_token(scene.hub, mallory)) as client:
        assert ask(client).json() == {"status": "pending"}
    (found,) = scene.ada.get(f"{AT}/pending").json()
    assert (found["user"]["user"], "email" in found["user"]) == ("mallory", False)
    assert "mallory@" not in scene.ada.get(f"/{REPO}/user-access-report").text
    with browser_of(scene.hub, scene.ada_user) as browser:
        assert "mallory@" not in browser.get(f"/{REPO}/settings/access").text.replace("<wbr>", "")
    link = link_in(mails_to(scene.hub, "mallory@example.org")[-1])
    with scene.hub.client() as stranger:
        assert submit(stranger, link, password=PASSWORD).status_code == 303
    assert scene.ada.get(f"{AT}/pending").json()[0]["user"]["email"] == "mallory@example.org"


def test_many_requests_are_handled_at_once(scene: Scene) -> None:
    gate(scene)
    ask(scene.bob)
    body = {"status": "accepted", "requests": [{"user": "bob"}, {"user": "nobody"}]}
    response = scene.wim.post(f"{AT}/batch", json=body)
    assert response.json() == [
        {"user": "bob", "ok": True},
        {"user": "nobody", "ok": False, "error": "There is no such access request."},
    ]
    assert listed(scene, "accepted") == ["bob"]
    assert scene.ada.post(f"{AT}/batch", json={**body, "requests": [{"user": "x"}] * 101}).status_code == 422


@pytest.mark.one_engine
def test_only_a_rejection_has_a_reason(scene: Scene) -> None:
    gate(scene)
    ask(scene.bob)
    for status in ("accepted", "rejected", "pending"):
        assert handle(scene.ada, status, user="bob", rejectionReason="Because").status_code == 200
        (found,) = scene.ada.get(f"{AT}/{status}").json()
        assert found.get("rejectionReason") == ("Because" if status == "rejected" else None)


@pytest.mark.one_engine
def test_writers_do_not_grant_themselves_access(scene: Scene) -> None:
    """It would outlive their role: they have access as members, and another writer can grant it beyond that."""
    gate(scene)
    wim = {"user": "wim"}
    refused = scene.wim.post(f"{AT}/grant", json=wim)
    assert (refused.status_code, "yourself" in refused.json()["error"]) == (400, True)
    assert listed(scene, "accepted") == []
    assert scene.ada.post(f"{AT}/grant", json=wim).status_code == 200
    assert handle(scene.wim, "rejected", **wim).status_code == 200
    assert handle(scene.wim, "accepted", **wim).status_code == 400
    assert scene.wim.post(f"{AT}/grant", json=wim).status_code == 400
    answer = scene.wim.post(f"{AT}/batch", json={"status": "accepted", "requests": [wim]}).json()
    assert [result["ok"] for result in answer] == [False]
    assert listed(scene, "accepted") == []


@pytest.mark.one_engine
def test_access_ends_with_membership_unless_another_writer_granted_it(scene: Scene) -> None:
    gate(scene)
    assert scene.wim.post(f"{AT}/grant", json={"user": "rob"}).status_code == 200
    for user in (scene.wim_user, scene.rob_user):
        assert scene.ada.delete(f"/api/organizations/acme/members/{user.name}").status_code == 200
    assert scene.wim.get(f"/{REPO}/resolve/main/weights.txt").status_code == 403
    assert scene.rob.get(f"/{REPO}/resolve/main/weights.txt").status_code == 200


@pytest.mark.one_engine
def test_only_writers_see_and_handle_requests(scene: Scene) -> None:
    gate(scene)
    ask(scene.bob)
    with api(scene.hub, create_token(scene.hub, scene.bob_user, "read")) as reading:
        for client in (scene.rob, scene.bob, reading):
            assert client.get(f"{AT}/pending").status_code == 403
            assert client.get(f"/{REPO}/user-access-report").status_code == 403
            assert handle(client, "accepted").status_code == 403
            assert client.post(f"{AT}/grant", json={"user": "bob"}).status_code == 403
            assert client.post(f"{AT}/batch", json={"status": "accepted", "requests": []}).status_code == 403
        assert ask(reading).status_code == 403
    assert ask(scene.visitor).status_code == 401


@pytest.mark.one_engine
def test_repo_that_is_not_gated_has_no_requests(scene: Scene) -> None:
    for response in (
        ask(scene.bob),
        handle(scene.ada, "accepted"),
        scene.ada.post(f"{AT}/grant", json={"user": "bob"}),
        scene.ada.post(f"{AT}/batch", json={"status": "accepted", "requests": [{"user": "bob"}]}),
    ):
        assert (response.status_code, response.headers["x-error-code"]) == (400, "RepoNotGated")
    assert listed(scene, "pending") == []


@pytest.mark.one_engine
def test_members_need_no_request(scene: Scene) -> None:
    gate(scene)
    assert ask(scene.rob).json() == {"status": "accepted"}
    assert listed(scene, "accepted") == []


def test_concurrent_requests_of_a_user_create_one_request(scene: Scene) -> None:
    gate(scene)
    assert run_concurrently([lambda: ask(scene.bob).json()["status"]] * 5) == ["pending"] * 5
    assert listed(scene, "pending") == ["bob"]


@pytest.mark.one_engine
def test_answers_are_limited(scene: Scene) -> None:
    gate(scene)
    assert ask(scene.bob, **{f"q{number}": "x" for number in range(21)}).status_code == 422
    assert ask(scene.bob, why="x" * 1001).status_code == 422
    assert scene.bob.post(f"/api/models/{REPO}/ask-access", json={"fields": {"why": 3}}).status_code == 422
    assert scene.bob.post(f"/api/models/{REPO}/ask-access").status_code == 200


@pytest.mark.one_engine
def test_organization_logs_decisions(scene: Scene) -> None:
    gate(scene)
    ask(scene.bob)
    handle(scene.ada, "accepted")
    log = scene.ada.get("/api/organizations/acme/audit-log/export?q=type:repo.review_access").json()
    (entry,) = log
    assert entry["message"] == f"accepted the request of bob for access to the model {REPO}"
    assert (entry["data"]["user"], entry["data"]["decision"]) == ("bob", "accepted")


def test_concurrent_decisions_report_one_winner(scene: Scene) -> None:
    gate(scene)
    ask(scene.bob)
    answers = run_concurrently([lambda: handle(scene.ada, "accepted").status_code] * 5)
    assert sorted(answers) == [200, 404, 404, 404, 404]
    log = scene.ada.get("/api/organizations/acme/audit-log/export?q=type:repo.review_access").json()
    assert len(log) == 1


@pytest.mark.one_engine
def test_gated_repos_scope_reads_repos_that_the_user_may_read(scene: Scene) -> None:
    gate(scene)
    oid = send_large(scene.ada, REPO, b"large")
    scopes = ("openid", "gated-repos", "read-repos", "manage-repos")
    app = create_app(scene.hub, scopes=scopes)
    gated = token_of(app, scene.bob_user, "gated-repos")
    with api(scene.hub, gated) as client:
        assert statuses(client, oid) == every(403)
        assert scene.ada.post(f"{AT}/grant", json={"user": "bob"}).status_code == 200
        assert statuses(client, oid) == every(200)
        # Apps may not ask for access: that would share the user's email address.
        assert ask(client).status_code == 403
    with api(scene.hub, token_of(create_app(scene.hub, scopes=scopes), scene.bob_user, "read-repos")) as client:
        answer = client.get(f"/{REPO}/resolve/main/weights.txt")
        assert (answer.status_code, answer.headers["x-error-message"]) == (
            403,
            "This token needs the scope gated-repos to read the files of this repo.",
        )


@pytest.mark.one_engine
def test_exchanged_token_reads_gated_repos_outside_its_organization(scene: Scene) -> None:
    club = create_organization(scene.hub, "club", scene.bob_user, plan="enterprise")
    gate(scene)
    app = create_exchange_app(scene.hub, club, scopes=("openid", "gated-repos", "read-repos"))
    with api(scene.hub, exchange_token(app, "bob@example.org")["access_token"]) as client:
        assert client.get(f"/{REPO}/resolve/main/weights.txt").status_code == 403
        assert scene.ada.post(f"{AT}/grant", json={"user": "bob"}).status_code == 200
        assert client.get(f"/{REPO}/resolve/main/weights.txt").status_code == 200


@pytest.mark.one_engine
def test_events_contain_nothing_that_the_gate_hides(scene: Scene) -> None:
    """Events of a gated repo contain names and ids, which everyone may see, but no content."""
    gate(scene)
    lines = '{"key":"header","value":{"summary":"x"}}\n{"key":"file","value":{"path":"w","content":"hidden words"}}\n'
    headers = {"content-type": "application/x-ndjson"}
    assert scene.ada.post(f"/api/models/{REPO}/commit/main", content=lines, headers=headers).status_code == 200
    events = scene.visitor.get(f"/api/models/{REPO}/events").json()
    assert events[-1]["payload"]["event"] == {"action": "update", "scope": "repo.content"}
    assert set(events[-1]["payload"]) == {"event", "repo", "updatedRefs"}
    assert "hidden words" not in str(events)


def test_user_deleted_during_the_request_gets_no_access(scene: Scene) -> None:
    """The account is deleted after the caller was authenticated."""
    gate(scene)

    async def ask_late(opened: Hub) -> None:
        repo = await repo_store.named(opened.db, "model", "acme", "llm")
        assert repo is not None
        await own_account.delete(opened.accounts, scene.bob_user, SYSTEM)
        await access_requests.ask(opened.repos, repo, scene.bob_user, {})

    with pytest.raises(NotFound):
        scene.hub.call(ask_late)
    assert listed(scene, "pending") == []


@pytest.mark.one_engine
def test_questions_of_the_card_must_be_answered(scene: Scene) -> None:
    """One of them may be the consent to a license, so the API does not accept less than the page."""
    card = "---\nextra_gated_fields:\n  I accept the license: checkbox\n  Country: text\n---\n# Card\n"
    create_commit(scene.ada, REPO, {"README.md": card.encode()})
    gate(scene, "auto")
    assert scene.bob.post(f"/api/models/{REPO}/ask-access").status_code == 422
    for given in ({}, {"Country": "Norway"}, {"Country": "Norway", "I accept the license": " "}):
        assert ask(scene.bob, **given).status_code == 422
    assert scene.bob.get(f"/{REPO}/resolve/main/weights.txt").status_code == 403
    assert ask(scene.bob, **{"Country": "Norway", "I accept the license": "yes"}).json() == {"status": "accepted"}
    # Asking again changes nothing.
    assert scene.bob.post(f"/api/models/{REPO}/ask-access").json() == {"status": "accepted"}
