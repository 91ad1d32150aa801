"""An account, an app or a repo is deleted while a request about it is handled: it is answered without a 500."""

import hashlib
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

import httpx
from tests.bed import devices, lean_http
from tests.bed.apps import REDIRECT, create_app
from tests.bed.concurrency import run_concurrently
from tests.bed.people import Page, api, browser_of, create_token, create_user, fill_form
from tests.bed.repos import create_repo, send_commit
from tests.bed.running_hub import RunningHub

from hubgate.server.accounts import own_account
from hubgate.server.accounts.model import User
from hubgate.server.audit.model import SYSTEM

ROUNDS, REQUESTS = 12, 4
Call = Callable[[], httpx.Response]


def delete_account(hub: RunningHub, user: User) -> httpx.Response:
    hub.call(lambda opened: own_account.delete(opened.accounts, user, SYSTEM))
    return httpx.Response(204)


def delete_repo(client: httpx.Client, repo: str, after_seconds: float = 0.0) -> httpx.Response:
    time.sleep(after_seconds)
    deleted = client.request("DELETE", "/api/repos/delete", json={"name": repo.rpartition("/")[2]})
    assert deleted.status_code == 200, deleted.text
    return deleted


def test_device_denied_while_the_account_is_deleted(hub: RunningHub) -> None:
    client = create_app(hub, create_user(hub, "olga"))

    def deny(browser: httpx.Client) -> Call:
        page = devices.enter(browser, devices.start(client)["user_code"])
        return partial(browser.post, devices.VERIFY, data={**Page(page).hidden(), "decision": "deny"})

    for number in range(ROUNDS):
        user = create_user(hub, f"user{number}")
        with ExitStack() as open_until_done:
            browsers = [open_until_done.enter_context(browser_of(hub, user)) for _ in range(REQUESTS)]
            denials = [deny(browser) for browser in browsers]
            _, *answers = run_concurrently([partial(delete_account, hub, user), *denials])
        # Denied before, no such code any more, or signed out.
        assert {answer.status_code for answer in answers} <= {303, 403, 404}, [answer.text for answer in answers]


def test_app_or_resource_server_created_while_the_account_is_deleted(hub: RunningHub) -> None:
    for number in range(ROUNDS):
        user = create_user(hub, f"user{number}")
        with api(hub, create_token(hub, user)) as script:
            app = {"name": "Notebook", "redirectUris": [REDIRECT]}
            server = {"name": "Notes", "identifier": f"https://notes{number}.example/"}
            calls = [
                *(partial(script.post, "/api/settings/applications", json=app) for _ in range(REQUESTS)),
                *(partial(script.post, "/api/settings/resources", json=server) for _ in range(REQUESTS)),
            ]
            _, *answers = run_concurrently([partial(delete_account, hub, user), *calls])
        assert {answer.status_code for answer in answers} <= {201, 401, 404, 422}, [answer.text for answer in answers]


def test_operator_is_asked_while_the_app_is_deleted(hub: RunningHub) -> None:
    olga = create_user(hub, "olga")
    with api(hub, create_token(hub, olga)) as script, browser_of(hub, olga) as browser:
        for _ in range(ROUNDS):
            hub.clock.advance(3600)
            page = f"/settings/applications/{create_app(hub, olga).id}"
            ask = fill_form(browser, f"{page}/ask/scope", wanted="read-metrics", reason="Charts")
            _, answer = run_concurrently([partial(script.delete, f"/api{page}"), ask])
            assert answer.status_code in (303, 404), answer.text


def test_reset_is_requested_while_the_account_is_deleted(hub: RunningHub) -> None:
    with hub.client() as visitor:
        for number in range(ROUNDS):
            hub.clock.advance(3600)
            user = create_user(hub, f"user{number}")
            request = fill_form(visitor, "/reset", email=user.email)
            _, *answers = run_concurrently([partial(delete_account, hub, user), *[request] * REQUESTS])
            # Also if there is no such account.
            assert {answer.status_code for answer in answers} == {200}, [answer.text for answer in answers]


def test_pull_requests_are_removed_while_the_account_of_their_author_is_deleted(hub: RunningHub) -> None:
    with api(hub, create_token(hub, create_user(hub, "olga"))) as owner:
        for number in range(ROUNDS):
            author = create_user(hub, f"user{number}")
            create_repo(owner, f"repo{number}")
            discussions = f"/api/models/olga/repo{number}/discussions"
            with api(hub, create_token(hub, author)) as guest:
                for pull_request in range(1, REQUESTS + 1):
                    large = {f"{pull_request}.bin": b"%d" % pull_request}
                    opened = send_commit(guest, f"olga/repo{number}", large, query="?create_pr=1")
                    assert opened.status_code == 200, opened.text
            closed = owner.post(f"{discussions}/1/status", json={"status": "closed"})
            assert closed.status_code == 200, closed.text
            removals = [partial(owner.delete, f"{discussions}/{num}") for num in range(2, REQUESTS + 1)]
            delete_ref = partial(owner.delete, f"{discussions}/1/ref")
            _, *answers = run_concurrently([partial(delete_account, hub, author), delete_ref, *removals])
            assert {answer.status_code for answer in answers} == {200}, [answer.text for answer in answers]


def test_large_files_are_received_while_the_repo_is_deleted(hub: RunningHub) -> None:
    def upload(client: httpx.Client, repo: str, content: bytes) -> Call:
        large = {"oid": hashlib.sha256(content).hexdigest(), "size": len(content)}
        announced = client.post(f"/{repo}.git/info/lfs/objects/batch", json={"operation": "upload", "objects": [large]})
        href = announced.json()["objects"][0]["actions"]["upload"]["href"]
        return partial(lean_http.put, href, content=content)

    with ExitStack() as open_until_done:
        owner, guest = (
            open_until_done.enter_context(api(hub, create_token(hub, create_user(hub, name))))
            for name in ("olga", "gus")
        )
        for number in range(ROUNDS):
            repo = create_repo(owner, f"repo{number}")["name"]
            uploads = [
                upload(client, repo, b"%d %d %d" % (number, place, client is owner))
                for place in range(REQUESTS)
                for client in (owner, guest)
            ]
            _, *answers = run_concurrently([partial(delete_repo, owner, repo), *uploads])
            assert {answer.status_code for answer in answers} <= {200, 404}, [answer.text for answer in answers]


def test_repo_is_deleted_while_git_reads_and_writes_it(hub: RunningHub) -> None:
    with api(hub, create_token(hub, create_user(hub, "olga"))) as owner:
        for number in range(ROUNDS):
            repo = create_repo(owner, f"repo{number}")["name"]
            opened = send_commit(owner, repo, {"idea.txt": b"1"}, query="?create_pr=1")
            assert opened.status_code == 200, opened.text
            send_commit(owner, repo, {"other.txt": b"1"})
            calls = [
                partial(owner.post, f"/api/models/{repo}/discussions/1/merge"),
                partial(owner.get, f"/api/models/{repo}/discussions/1?diff=1"),
                partial(owner.get, f"/api/models/{repo}/compare/main..refs/pr/1"),
                partial(send_commit, owner, repo, {"weights.bin": b"1"}),
            ]
            delete = partial(delete_repo, owner, repo, number * 0.006)
            _, *answers = run_concurrently([delete, *calls])
            # Git may find no common history of what is being deleted.
            assert {answer.status_code for answer in answers} <= {200, 404, 409}, [answer.text for answer in answers]
