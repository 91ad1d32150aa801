"""W33, W34: a webhook's secret is shown to its owner where it is set and nowhere else; answers are shown as text."""

import base64
import html
import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest
from tests.bed.background_delivery import deliver_in_background
from tests.bed.dump import dump
from tests.bed.engines import Engine, settings_for
from tests.bed.people import api, browser_of, create_organization, create_token, create_user
from tests.bed.repos import create_repo
from tests.bed.running_hub import RunningHub, run_hub
from tests.bed.webhooks import Receiver, create_webhook, run_receiver, settle

PATH = "/api/settings/webhooks"
# One that every encoding changes, one that scanners look for, and one that is used as raw bytes.
SECRETS = [
    'q"u<o>te & \\ slash/%',
    "plain-but-s3cr3t-enough",
    "whsec_" + base64.b64encode(b"sixteen byte key").decode(),
]


@pytest.fixture
def hub(engine: Engine, tmp_path: Path) -> Iterator[RunningHub]:
    with run_hub(settings_for(engine.fresh_url(), tmp_path, egress_allow="127.0.0.0/8")) as started:
        yield started


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with run_receiver() as started:
        yield started


def spellings(secret: str) -> list[str]:
    raw = [secret, json.dumps(secret)[1:-1], html.escape(secret), quote(secret, safe="")]
    return [*raw, base64.b64encode(secret.encode()).decode(), secret.encode().hex()]


def contains_no_secret(text: str | bytes, where: str) -> None:
    said = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    for secret in SECRETS:
        for spelling in spellings(secret):
            assert spelling not in said, (where, spelling)


def test_w33_secret_is_shown_to_its_owner_only(hub: RunningHub, receiver: Receiver) -> None:
    ada = create_user(hub, "ada")
    create_organization(hub, "acme", ada, plan="enterprise")
    receiver.status = 500
    with api(hub, create_token(hub, ada)) as owner, browser_of(hub, ada) as browser:
        for number, secret in enumerate(SECRETS):
            webhook = create_webhook(owner, receiver.url, "user:ada", secret="the first one, replaced")
            changed = owner.post(f"{PATH}/{webhook['id']}", json={"secret": secret, "overlapSeconds": 3600})
            assert changed.json()["webhook"]["secret"] == secret
            of_acme = "/api/organizations/acme/settings/webhooks"
            body = {"url": receiver.url, "watched": [{"type": "org", "name": "acme"}], "secret": secret}
            assert owner.post(of_acme, json=body).status_code == 200
            # A receiver that repeats what it was sent, in many encodings.
            receiver.answer = ("x" * 4000 + " ".join(spellings(secret)[:4] * 3)).encode()
            create_repo(owner, f"r{number}")
            settle(hub)
            sent = [one for one in receiver.received if one.headers["x-hubgate-webhook"] == webhook["id"]]
            assert sent[-1].headers["x-webhook-secret"] == secret
            receiver.answer = " ".join(spellings(secret)[:4] * 3).encode()
            with deliver_in_background(hub):
                told = owner.post(f"{PATH}/{webhook['id']}/test")
            contains_no_secret(told.text, "the answer of a test")
            logs = owner.get(f"{PATH}/{webhook['id']}/logs")
            contains_no_secret(logs.text, "the list")
            for log in logs.json():
                found = owner.get(f"{PATH}/{webhook['id']}/logs/{log['id']}")
                contains_no_secret(found.text, "a delivery")
                assert found.json()["tries"][-1]["response"]
            # Rejected bodies, wrong routes: an error does not repeat what it was sent.
            for place in (PATH, f"{PATH}/{webhook['id']}", of_acme):
                wrong = {
                    "secret": secret + "\n",
                    "url": "http://10.0.0.1/",
                    "watched": [{"type": secret, "name": secret}],
                }
                contains_no_secret(owner.post(place, json=wrong).text, "an error")
                contains_no_secret(owner.post(place, json={"secret": [secret], "watched": [secret]}).text, "an error")
            contains_no_secret(owner.get(f"{PATH}/{quote(secret, safe='')}").text, "an error page")
            for page in pages_of(browser, webhook["id"], log["id"]):
                contains_no_secret(page.text, str(page.url))
            owner.delete(f"{PATH}/{webhook['id']}")
        export = owner.get("/api/organizations/acme/audit-log/export")
        assert export.status_code == 200
        contains_no_secret(export.text, "the export")
        own = browser.get("/settings/export")
        assert own.status_code == 200
        contains_no_secret(own.text, "the export of an account")
    contains_no_secret(hub.call(dump), "the database, and so every backup")
    contains_no_secret(hub.log, "the log")


def pages_of(browser: httpx.Client, webhook_id: str, delivery_id: str) -> list[httpx.Response]:
    """Every page about a webhook."""
    one = f"/{webhook_id}"
    tails = ("", one, f"{one}/settings", f"{one}/events", f"{one}/deliveries/{delivery_id}")
    found = [browser.get(f"/settings/webhooks{tail}") for tail in (*tails, f"{one}/deliveries/{delivery_id}/payload")]
    assert {page.status_code for page in found} == {200}, [(page.url, page.status_code) for page in found]
    return found


def test_w33_sealed_secret_moved_to_another_webhook_cannot_be_opened(hub: RunningHub, receiver: Receiver) -> None:
    """An attacker with write access to the database cannot have another's secret sent to their own receiver."""
    with (
        api(hub, create_token(hub, create_user(hub, "ada"))) as ada,
        api(hub, create_token(hub, create_user(hub, "eve"))) as eve,
    ):
        hers = create_webhook(ada, "https://ci.example/", "user:ada", secret="hers alone")
        mine = create_webhook(eve, receiver.url, "user:eve", secret="mine")
        sql = "UPDATE webhooks SET secret = (SELECT secret FROM webhooks WHERE id = :hers) WHERE id = :mine"
        hub.call(lambda opened: opened.db.write(lambda tx: tx.exec(sql, {"hers": hers["id"], "mine": mine["id"]})))
        shown = eve.get(f"{PATH}/{mine['id']}")
        assert "hers alone" not in shown.text


HOSTILE = [
    b"<script>alert(1)</script><img src=x onerror=alert(1)>",
    b"\xff\xfe\x00\x01 not text \x00",
    "\u202eright to left \u200b zero width".encode(),
    b"</pre></main><form action=//evil.example>",
    b"{{ 7 * 7 }} {% raw %}",
]


@pytest.mark.one_engine
def test_w34_receivers_answer_is_shown_as_text(hub: RunningHub, receiver: Receiver) -> None:
    ada = create_user(hub, "ada")
    with api(hub, create_token(hub, ada)) as owner, browser_of(hub, ada) as browser:
        webhook = create_webhook(owner, receiver.url, "user:ada")
        at = f"{PATH}/{webhook['id']}"
        for number, body in enumerate(HOSTILE):
            receiver.answer = body
            receiver.answer_headers = {"content-type": "text/html", "set-cookie": "token=evil", "x-evil": "<script>"}
            create_repo(owner, f"r{number}")
            settle(hub)
            log = owner.get(f"{at}/logs").json()[0]
            full = owner.get(f"{at}/logs/{log['id']}")
            assert full.headers["content-type"].startswith("application/json")
            assert full.headers["x-content-type-options"] == "nosniff"
            assert "set-cookie" not in full.headers
            assert full.json()["tries"][0]["response"] == body.decode("utf-8", "replace")
            for shown in pages_of(browser, webhook["id"], log["id"]):
                assert b"<script>alert" not in shown.content
                assert b"<img src=x" not in shown.content
                assert b"<form action=//evil" not in shown.content
                assert b"\x00" not in shown.content
                assert "evil" not in shown.headers.get("set-cookie", "")


@pytest.mark.one_engine
def test_w34_names_in_payloads_and_urls_are_shown_as_text(hub: RunningHub, receiver: Receiver) -> None:
    """A URL may contain what a page must not interpret as markup."""
    ada = create_user(hub, "ada")
    with api(hub, create_token(hub, ada)) as owner, browser_of(hub, ada) as browser:
        webhook = create_webhook(owner, f"{receiver.url}?a='onload=alert(1)&b=;//", "user:ada")
        create_repo(owner, "tiny")
        settle(hub)
        (log,) = owner.get(f"{PATH}/{webhook['id']}/logs").json()
        for page in pages_of(browser, webhook["id"], log["id"]):
            assert "'onload=alert(1)" not in page.text
