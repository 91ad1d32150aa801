"""Webhooks on pages, without JavaScript: created, changed, observed and deleted."""

import base64
import html
import json
import re
from collections.abc import Iterator
from html import unescape

import httpx
import pytest
from tests.bed.background_delivery import deliver_in_background
from tests.bed.engines import Engine, settings_for
from tests.bed.people import (
    Page,
    api,
    browser_of,
    create_organization,
    create_token,
    create_user,
    mails_to,
    submit,
)
from tests.bed.repos import create_commit, create_repo
from tests.bed.running_hub import RunningHub, run_hub
from tests.bed.webhooks import Receiver, create_webhook, secret_of, settle
from tests.protocol.test_phone_columns import columns

from hubgate.server.accounts.model import User
from hubgate.server.web.pages.listing import ROWS

pytestmark = pytest.mark.one_engine

ROOT = "/settings/webhooks"
API = "/api/settings/webhooks"
URL = "https://ci.example/hook?x=1"
FIELDS: dict[str, str | list[str]] = {
    "url": URL,
    "watched": "user:ada\r\n\r\n datasets/acme/rows\r\nacme/tiny",
    "domains": ["repo"],
    "secretKind": "none",
    "secret": "",
}


@pytest.fixture
def hub(engine: Engine, tmp_path) -> Iterator[RunningHub]:
    settings = settings_for(engine.fresh_url(), tmp_path, egress_allow="127.0.0.0/8", webhooks_per_owner="3")
    with run_hub(settings) as started:
        yield started


@pytest.fixture
def ada(hub: RunningHub) -> User:
    return create_user(hub, "ada")


@pytest.fixture
def program(hub: RunningHub, ada: User) -> Iterator[httpx.Client]:
    with api(hub, create_token(hub, ada)) as client:
        yield client


@pytest.fixture
def browser(hub: RunningHub, ada: User) -> Iterator[httpx.Client]:
    with browser_of(hub, ada) as client:
        yield client


def text_of(response: httpx.Response) -> str:
    """The text of <main>, with single spaces."""
    main = response.text.partition("<main")[2].partition("</main>")[0]
    return " ".join(unescape(re.sub(r"<[^>]+>", "", main)).split())


def text_after(browser: httpx.Client, response: httpx.Response) -> str:
    """The text of the page that a form leads to."""
    assert response.status_code == 303, response.text
    shown = browser.get(response.headers["location"])
    assert shown.status_code == 200
    return text_of(shown)


def press(browser: httpx.Client, page: str, action: str) -> httpx.Response:
    """Press a button on a page, which must exist."""
    return browser.post(action, data=Page(browser.get(page)).hidden(action))


def test_webhook_is_created_on_the_page(hub: RunningHub, browser: httpx.Client, program: httpx.Client) -> None:
    empty = browser.get(ROOT)
    assert "Get a POST when a repo changes." in text_of(empty)
    assert f'<a class="button button-primary" href="{ROOT}/new">New webhook</a>' in empty.text
    assert '<a href="/settings/webhooks" aria-current="page">Webhooks</a>' in empty.text
    begun = browser.get(f"{ROOT}/new").text
    assert f'<button class="button button-primary" formaction="{ROOT}/dry-run">See last 7 days</button>' in begun
    assert '<button class="button">Save</button>' in begun
    assert re.search(r"<textarea[^>]* id=\"watched\"[^>]*>\nuser:ada</textarea>", begun)
    assert "\nmodel:a/b&lt;</textarea>" in browser.get(f"{ROOT}/new", params={"watch": "model:a/b<"}).text

    saved = submit(browser, f"{ROOT}/new", ROOT, **FIELDS)
    (webhook,) = program.get(API).json()
    assert saved.headers["location"] == f"{ROOT}/{webhook['id']}"
    assert "Saved. Send a test to see whether the receiver answers." in text_after(browser, saved)
    assert (webhook["url"], webhook["domains"], webhook["ordered"]) == (URL, ["repo"], False)
    assert [f"{watch['type']}:{watch['name']}" for watch in webhook["watched"]] == [
        "user:ada",
        "dataset:acme/rows",
        "model:acme/tiny",
    ]
    assert webhook["hasSecret"] is False
    hub.clock.advance(1)
    own = submit(browser, f"{ROOT}/new", ROOT, **{**FIELDS, "secretKind": "own", "secret": "s3cret", "ordered": "on"})
    assert own.status_code == 303
    assert [(secret_of(hub, one["id"]), one["ordered"]) for one in program.get(API).json()[1:]] == [("s3cret", True)]
    listed = browser.get(ROOT)
    assert "ci.example" in text_of(listed)
    assert "● Enabled" in text_of(listed)
    assert columns(listed.text, "Webhooks")


def test_generated_secret_is_shown_once(hub: RunningHub, browser: httpx.Client, program: httpx.Client) -> None:
    form = {**Page(browser.get(f"{ROOT}/new")).hidden(ROOT), **FIELDS, "secretKind": "make"}
    made = browser.post(ROOT, data=form)
    (webhook,) = program.get(API).json()
    assert made.status_code == 200
    assert made.headers["cache-control"] == "no-store"
    first = secret_of(hub, webhook["id"]) or ""
    assert f'value="{first}" readonly' in made.text
    assert len(base64.b64decode(first.removeprefix("whsec_"))) == 32
    again = browser.post(ROOT, data=form)
    assert "Already created. The secret cannot be shown again." in text_of(again)
    assert len(program.get(API).json()) == 1
    at = f"{ROOT}/{webhook['id']}"
    assert all("whsec_" not in browser.get(page).text for page in (ROOT, at, f"{at}/settings", f"{at}/secret"))
    assert "✓ Set" in text_of(browser.get(f"{at}/settings"))

    replaced = submit(browser, f"{at}/secret", f"{at}/secret", secretKind="make", secret="", overlapSeconds="3600")
    now = secret_of(hub, webhook["id"])
    assert now != first
    assert f'value="{now}" readonly' in replaced.text
    assert "For 1 hour, they are also signed with the old secret." in text_of(replaced)
    assert "Deliveries are also signed with the old secret until" in text_of(browser.get(f"{at}/settings"))
    own = submit(browser, f"{at}/secret", f"{at}/secret", secretKind="own", secret="mine", overlapSeconds="0")
    assert "The secret is set." in text_after(browser, own)
    assert secret_of(hub, webhook["id"]) == "mine"
    for fields, error in (
        ({"secretKind": "own", "secret": ""}, "Enter the secret, or generate one."),
        (
            {"secretKind": "own", "secret": "é"},
            "A secret is 1 to 256 printable ASCII characters, no space at either end.",
        ),
        ({"secretKind": "make", "overlapSeconds": "5"}, "Choose one from the list."),
    ):
        refused = submit(browser, f"{at}/secret", f"{at}/secret", **fields)
        assert (refused.status_code, text_of(refused).count(error)) == (422, 2)
        assert "<title>Error: Secret" in refused.text
    removed = press(browser, f"{at}/secret/remove", f"{at}/secret/remove")
    assert "The secret is removed." in text_after(browser, removed)
    kept = program.get(f"{API}/{webhook['id']}").json()["webhook"]
    assert kept["hasSecret"] is False
    assert kept["publicKey"] in browser.get(f"{at}/settings").text


def test_invalid_form_is_rejected(browser: httpx.Client, program: httpx.Client) -> None:
    bad = {"url": "http://127.0.0.1:22/", "watched": "ada", "domains": [], "secretKind": "own", "secret": "hush"}
    refused = submit(browser, f"{ROOT}/new", ROOT, **bad)
    assert refused.status_code == 422
    assert "<title>Error: New webhook" in refused.text
    assert "Fix these to continue:" in text_of(refused)
    for name, error in (
        ("url", "This address is not allowed: port 22 belongs to another kind of service."),
        ("watched", "ada: Enter one per line, such as user:ada, org:acme"),
        ("domains", "Choose one or both of repo and discussion."),
    ):
        assert f'<a href="#{name}">{error}' in unescape(refused.text)
        assert f'id="{name}"' in refused.text
        assert f'id="{name}-error"' in refused.text
    assert 'value="http://127.0.0.1:22/"' in refused.text
    assert "hush" not in refused.text
    assert "Enter the address of the receiver." in text_of(
        submit(browser, f"{ROOT}/new", ROOT, **{**FIELDS, "url": ""})
    )
    twice = browser.post(ROOT, data={**Page(browser.get(f"{ROOT}/new")).hidden(ROOT), **FIELDS, "url": ["a", "b"]})
    assert twice.status_code == 400
    for _ in range(3):
        assert submit(browser, f"{ROOT}/new", ROOT, **FIELDS).status_code == 303
    full = submit(browser, f"{ROOT}/new", ROOT, **FIELDS)
    assert (full.status_code, "At most 3 webhooks. Delete one first." in text_of(full)) == (422, True)
    assert "3 of 3" in text_of(browser.get(ROOT))
    at = f"{ROOT}/{program.get(API).json()[0]['id']}/settings"
    refused = submit(browser, at, at, **{**FIELDS, "watched": ""})
    assert (refused.status_code, "Name at least one user, organization or repo." in text_of(refused)) == (422, True)


def test_webhook_is_changed_disabled_and_deleted(hub: RunningHub, browser: httpx.Client, program: httpx.Client) -> None:
    webhook = create_webhook(program, URL, "user:ada", "model:ada/tiny", secret="s")
    at, one = f"{ROOT}/{webhook['id']}", f"{API}/{webhook['id']}"
    shown = browser.get(f"{at}/settings").text
    assert "\nuser:ada\nmodel:ada/tiny</textarea>" in shown
    assert f'value="{URL}"' in shown
    changed = submit(
        browser,
        f"{at}/settings",
        f"{at}/settings",
        url="https://other.example:8443/x",
        watched="org:acme",
        domains=["repo", "discussion"],
        ordered="on",
    )
    assert "Saved." in text_after(browser, changed)
    now = program.get(one).json()["webhook"]
    assert (now["url"], now["watched"]) == ("https://other.example:8443/x", [{"type": "org", "name": "acme"}])
    assert (now["ordered"], now["domains"]) == (True, ["repo", "discussion"])
    assert secret_of(hub, webhook["id"]) == "s"

    off = press(browser, f"{at}/settings", f"{at}/disable")
    assert "Disabled. Nothing is sent until you enable the webhook." in text_after(browser, off)
    assert program.get(one).json()["webhook"]["disabled"] is True
    assert "○ Disabled" in text_of(browser.get(at))
    assert f'action="{at}/test"' not in browser.get(at).text
    assert "Enabled." in text_after(browser, press(browser, at, f"{at}/enable"))
    assert program.get(one).json()["webhook"]["status"] == "enabled"

    events = text_of(browser.get(f"{at}/events"))
    assert "org acme does not exist yet" in events
    assert "repo.content update" in events
    asked = browser.get(f"{at}/delete")
    assert "This permanently deletes the webhook to other.example:8443 with its 0 deliveries." in text_of(asked)
    # Two may have the same host.
    assert "https://other.example:8443/x" in asked.text.replace("<wbr>", "")
    wrong = submit(browser, f"{at}/delete", f"{at}/delete", name="other.example")
    assert (wrong.status_code, "Type other.example:8443, exactly as shown here." in text_of(wrong)) == (422, True)
    gone = submit(browser, f"{at}/delete", f"{at}/delete", name=" other.example:8443 ")
    assert "Deleted the webhook to other.example:8443." in text_after(browser, gone)
    assert program.get(one).status_code == 404
    assert browser.get(at).status_code == 404


def test_events_tab_does_not_reveal_a_hidden_repo(
    hub: RunningHub, browser: httpx.Client, program: httpx.Client
) -> None:
    with api(hub, create_token(hub, create_user(hub, "eve"))) as eve:
        create_repo(eve, "hidden", private=True)
    webhook = create_webhook(program, URL, "model:eve/hidden", "model:eve/absent")
    shown = browser.get(f"{ROOT}/{webhook['id']}/events").text
    there, absent = (re.sub("hidden|absent", "x", line) for line in shown.splitlines() if "eve/" in line)
    assert there == absent


def test_activity_lists_deliveries(
    hub: RunningHub, browser: httpx.Client, program: httpx.Client, receiver: Receiver
) -> None:
    webhook = create_webhook(program, receiver.url, "user:ada", secret="whsec_aHVzaGh1c2g=")
    at = f"{ROOT}/{webhook['id']}"
    assert "Deliveries appear here, with the receiver's answers." in text_of(browser.get(at))
    receiver.answer = b"<script>alert(1)</script>\xff\x1b[31m done"
    create_repo(program, "tiny")
    settle(hub)
    receiver.status = 503
    create_commit(program, "ada/tiny", {"a.txt": b"one"})
    settle(hub)
    content, create = program.get(f"{API}/{webhook['id']}/logs").json()
    shown = browser.get(at)
    assert columns(shown.text, "Deliveries")
    for words in ("2 deliveries", "✓ Delivered", "↻ Retrying", "503", "200", "Next try", "No success since"):
        assert words in text_of(shown)

    def found(query: str) -> list[str]:
        return re.findall(rf'href="{at}/deliveries/(\w+)"', browser.get(f"{at}?{query}").text)

    assert found("state=retrying") == found("scope=repo.content") == [content["id"]]
    assert found("repo=ADA/tiny&state=delivered&scope=") == [create["id"]]
    nothing = browser.get(f"{at}?state=failed")
    assert "Nothing matches." in text_of(nothing)
    assert f'<a class="chip" href="{at}"><span class="unseen">Remove </span><bdi>failed</bdi>' in nothing.text
    odd = browser.get(f"{at}?state=odd")
    assert (odd.status_code, "Choose a state: pending, retrying," in text_of(odd)) == (422, True)

    page = browser.get(f"{at}/deliveries/{content['id']}")
    text = text_of(page)
    for words in (
        "repo.content update",
        "ada/tiny",
        "✕ 503",
        "Next try",
        f"POST {receiver.url}",
        "X-Webhook-Secret***",
    ):
        assert words in text
    assert "<script>alert" not in page.text
    assert html.escape("<script>alert(1)</script>") in page.text
    assert "\x1b" not in page.text
    assert "whsec_" not in page.text
    assert f"curl '{receiver.url}'" in text or f"curl {receiver.url}" in text
    assert "rejects the request after five minutes" in text
    sent = receiver.received[1]
    assert sent.headers["webhook-signature"] in text
    downloaded = browser.get(f"{at}/deliveries/{content['id']}/payload")
    assert downloaded.content == sent.body
    assert downloaded.headers["content-disposition"] == f"attachment; filename={content['id']}.json"
    shown_payload = re.search(r'<code id="payload">(.*?)</code>', page.text, re.DOTALL)
    assert shown_payload
    assert json.loads(unescape(shown_payload.group(1))) == sent.json
    assert browser.get(f"{at}/deliveries/{'0' * 24}").status_code == 404
    listed = text_of(browser.get(ROOT))
    assert "1 delivered, 1 retrying" in listed
    assert "Failing since" in listed


def test_page_sends_tests_and_replays(
    hub: RunningHub, browser: httpx.Client, program: httpx.Client, receiver: Receiver
) -> None:
    webhook = create_webhook(program, receiver.url, "user:ada")
    at = f"{ROOT}/{webhook['id']}"
    with deliver_in_background(hub):
        tested = press(browser, at, f"{at}/test")
        assert "Sent a test. The receiver answered 200." in text_after(browser, tested)
        assert receiver.received[0].headers["x-hubgate-test"] == "1"
        receiver.status = 500
        replayed = press(browser, tested.headers["location"], f"{tested.headers['location']}/replay")
    told = text_after(browser, replayed)
    assert "Replayed. The receiver answered 500." in told
    assert f"Replay of{tested.headers['location'].rpartition('/')[2]}" in told
    assert receiver.received[0].body == receiver.received[1].body
    program.post(f"{API}/{webhook['id']}/disable")
    there = tested.headers["location"]
    assert "enable the webhook" in text_of(browser.get(there))
    # A page that was opened before the webhook was disabled.
    late = browser.post(f"{there}/replay", data=Page(browser.get("/search")).hidden("/theme"))
    assert "Not sent. This webhook is disabled. Enable it first." in text_after(browser, late)


def test_suspended_webhook_is_resumed_with_one_click(
    hub: RunningHub, browser: httpx.Client, program: httpx.Client, receiver: Receiver
) -> None:
    webhook = create_webhook(program, receiver.url, "user:ada")
    at = f"{ROOT}/{webhook['id']}"
    receiver.status = 500
    create_repo(program, "first")
    for _ in range(16):
        settle(hub)
        # As the background process would.
        hub.call(lambda opened: opened.outbox.send_due())
        hub.clock.advance(seconds=0.4 * 86_400)
    create_repo(program, "while-suspended")
    settle(hub)
    assert program.get(f"{API}/{webhook['id']}").json()["webhook"]["disabled"] == "suspended-after-failure"
    mail = mails_to(hub, "ada@example.org", 2)[-1]
    assert f"{hub.url}{at}" in mail.get_content()
    shown = text_of(browser.get(at))
    waiting = [log for log in program.get(f"{API}/{webhook['id']}/logs").json() if log["state"] != "delivered"]
    missed = [log for log in waiting if log.get("reason") == "suspended" or log["repo"]["name"] == "ada/first"]
    assert missed
    (count,) = re.findall(
        r"Suspended after five days of failures. Fix the receiver, then re-enable and replay (\d+) events?\.", shown
    )
    assert "■ Suspended" in shown
    home = browser.get("/").text
    assert f'href="{at}">See why' in home
    assert "Webhook suspended:" in home
    receiver.status, receiver.received[:] = 200, []
    back = press(browser, at, f"{at}/enable")
    assert f"Enabled. {count} event{'' if count == '1' else 's'} queued again." in text_after(browser, back)
    settle(hub)
    assert len(receiver.received) == int(count)
    assert "ada/while-suspended" in [one.json["repo"]["name"] for one in receiver.received]
    told = {log["id"]: log["state"] for log in program.get(f"{API}/{webhook['id']}/logs").json()}
    assert all(told[one.headers["webhook-id"]] == "delivered" for one in receiver.received)
    assert "See why" not in browser.get("/").text
    # Pressed again: nothing changes.
    assert "Enabled." in text_after(browser, browser.post(f"{at}/enable", data=Page(browser.get(at)).hidden("/theme")))
    assert settle(hub) == 0


def test_missed_events_of_a_webhook_that_no_longer_has_a_url_are_stored(
    hub: RunningHub, browser: httpx.Client, program: httpx.Client, receiver: Receiver
) -> None:
    """It was suspended, its URL was removed, and then it was enabled: nothing waits for a receiver."""
    webhook = create_webhook(program, receiver.url, "user:ada")
    at = f"{API}/{webhook['id']}"
    receiver.status = 410
    create_repo(program, "first")
    settle(hub)
    create_repo(program, "second")
    settle(hub)
    assert program.post(at, json={"pull": True}).status_code == 200
    page = f"{ROOT}/{webhook['id']}"
    assert "Enabled. 2 events queued again." in text_after(browser, press(browser, page, f"{page}/enable"))
    settle(hub)
    assert [entry["state"] for entry in program.get(f"{at}/logs").json()] == ["stored", "stored"]
    events = program.get(f"{at}/events").json()["events"]
    assert ["body" in event for event in events] == [True, True]
    assert len(receiver.received) == 1


def test_webhook_suspended_by_410_shows_the_reason(
    hub: RunningHub, browser: httpx.Client, program: httpx.Client, receiver: Receiver
) -> None:
    webhook = create_webhook(program, receiver.url, "user:ada")
    receiver.status = 410
    create_repo(program, "tiny")
    settle(hub)
    at = f"{ROOT}/{webhook['id']}"
    assert "the receiver answered 410 (gone). Fix the receiver, then re-enable and replay 1 event." in text_of(
        browser.get(at)
    )
    receiver.status = 200
    assert "Enabled. 1 event queued again." in text_after(browser, press(browser, at, f"{at}/enable"))
    settle(hub)
    assert [log["state"] for log in program.get(f"{API}/{webhook['id']}/logs").json()] == ["delivered"]


def test_deliveries_have_pages(hub: RunningHub, browser: httpx.Client, program: httpx.Client) -> None:
    webhook = program.post(API, json={"pull": True, "watched": [{"type": "user", "name": "ada"}]}).json()["webhook"]
    at = f"{ROOT}/{webhook['id']}"
    create_repo(program, "tiny")
    for number in range(ROWS + 4):
        program.put("/api/models/ada/tiny/settings", json={"private": number % 2 == 0})
    settle(hub)

    def ids(page: httpx.Response) -> list[str]:
        return re.findall(rf'href="{at}/deliveries/(\w+)"', page.text)

    def onward(page: httpx.Response, word: str) -> str:
        return unescape(re.findall(rf'href="([^"]+)">{word}</a>', page.text)[0])

    first = browser.get(at)
    second = browser.get(onward(first, "Older"))
    assert [len(ids(first)), len(ids(second))] == [ROWS, 5]
    assert ids(first) + ids(second) == [log["id"] for log in program.get(f"{API}/{webhook['id']}/logs").json()]
    assert ids(browser.get(onward(second, "Newer"))) == ids(first)
    assert ">Newer</a>" not in first.text
    assert ">Older</a>" not in second.text
    assert browser.get(f"{at}?cursor=x").status_code == 400
    assert "No address: events are stored" in text_of(browser.get(ROOT))
    settings = f"{at}/settings"
    assert submit(browser, settings, settings, url="", watched="user:ada", domains=["repo"]).status_code == 303


def test_admins_manage_an_organizations_webhooks(
    hub: RunningHub, ada: User, browser: httpx.Client, receiver: Receiver
) -> None:
    bob = create_user(hub, "bob")
    create_organization(hub, "acme", ada, bob="write")
    root = "/organizations/acme/settings/webhooks"
    assert f'<a href="{root}" aria-current="page">Webhooks</a>' in browser.get(root).text
    assert "\norg:acme</textarea>" in browser.get(f"{root}/new").text
    saved = submit(browser, f"{root}/new", root, **{**FIELDS, "url": receiver.url, "watched": "org:acme"})
    at = saved.headers["location"]
    with api(hub, create_token(hub, bob)) as writer:
        create_repo(writer, "acme/tiny", private=True)
    settle(hub)
    assert receiver.kinds == ["repo create"]
    assert "acme/tiny" in text_of(browser.get(at))
    tails = ("", "/settings", "/events", "/secret", "/secret/remove", "/delete")
    assert [browser.get(at + tail).status_code for tail in tails] == [200] * len(tails)
    elsewhere = at.replace("/organizations/acme", "")
    assert [browser.get(elsewhere + tail).status_code for tail in tails] == [404] * len(tails)
    with browser_of(hub, bob) as member, browser_of(hub) as visitor:
        for tail in tails:
            assert member.get(at + tail).status_code == 403
            assert visitor.get(at + tail).headers["location"].startswith("/login?next=")
        assert member.get(root).status_code == 403


def test_saving_does_not_change_untouched_fields(
    hub: RunningHub, program: httpx.Client, browser: httpx.Client, receiver: Receiver
) -> None:
    """A name that another repo has now is not watched by accident; kinds that only the API sets remain."""
    create_repo(program, "tiny")
    webhook = create_webhook(program, receiver.url, "model:ada/tiny", "kernel:ada/x")
    page = f"{ROOT}/{webhook['id']}/settings"
    settle(hub)
    assert program.request("DELETE", "/api/repos/delete", json={"name": "tiny"}).status_code == 200
    create_repo(program, "tiny")
    settle(hub)
    told = len(receiver.received)
    fields = {"url": receiver.url, "domains": ["repo"], "watched": "model:ada/tiny\r\nkernel:ada/x\r\n"}
    assert submit(browser, page, page, **fields).status_code == 303
    assert program.get(f"{API}/{webhook['id']}").json()["webhook"]["domains"] == ["repo"]
    create_commit(program, "ada/tiny", {"a.txt": b"a"})
    settle(hub)
    assert len(receiver.received) == told, "the new repo of that name is not the one that was chosen"
    fields["watched"] = "model:ada/tiny\r\nkernel:ada/x\r\nuser:eve"
    assert submit(browser, page, page, **fields).status_code == 303
    create_commit(program, "ada/tiny", {"a.txt": b"b"})
    settle(hub)
    assert len(receiver.received) == told + 1, "written anew, it is"
