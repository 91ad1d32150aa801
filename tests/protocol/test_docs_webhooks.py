"""The sample code that verifies a delivery, in docs/webhooks.md and on `/docs/webhooks`, works."""

import json
import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.bed.engines import SqliteEngine, settings_for
from tests.bed.node import NODE
from tests.bed.people import api, code_on_page, create_token, create_user
from tests.bed.processes import ROOT
from tests.bed.repos import create_repo
from tests.bed.running_hub import run_hub
from tests.bed.webhooks import Received, create_webhook, run_receiver, settle

from hubgate.server.clock import SECOND

DOCS = (ROOT / "docs/webhooks.md").read_text()
SECRETS = ("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "any words of mine", None)
Verify = Callable[[str, dict[str, str], bytes], bool]


@pytest.fixture(scope="module")
def deliveries(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """One delivery for each secret, its verifier, and the page."""
    folder = tmp_path_factory.mktemp("hub")
    url = SqliteEngine(sqlite_template, folder).fresh_url()
    with run_hub(settings_for(url, folder, egress_allow="127.0.0.0/8")) as hub, run_receiver() as receiver:
        hub.clock.now = int(time.time()) * SECOND
        with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
            made = [create_webhook(ada, receiver.url, "user:ada", secret=secret) for secret in SECRETS]
            create_repo(ada, "tiny")
            settle(hub)
            page = ada.get("/docs/webhooks").text
    by_webhook = {one.headers["x-hubgate-webhook"]: one for one in receiver.received}
    keys = [(webhook.get("secret", webhook["publicKey"]), by_webhook[webhook["id"]]) for webhook in made]
    return {"page": page, "with_secret": keys[:2], "with_key": keys[2:]}


def python(text: str) -> Verify:
    names: dict[str, Any] = {}
    exec(text, names)
    verify: Verify = names["is_authentic"]
    return verify


def javascript(text: str) -> Verify:
    def verify(secret: str, headers: dict[str, str], body: bytes) -> bool:
        given = json.dumps([secret, headers, body.decode()])
        program = (
            f"{text}\nconst [s, h, b] = JSON.parse({json.dumps(given)});\n"
            "console.log(isAuthentic(s, h, Buffer.from(b)));"
        )
        command = [str(NODE), "--input-type=module", "-e", program]
        return subprocess.run(command, capture_output=True, check=True, text=True, timeout=60).stdout == "true\n"

    return verify


def expect(verify: Verify, key: str, sent: Received) -> None:
    headers = {name: value for name, value in sent.headers.items() if name.startswith("webhook-")}
    assert verify(key, headers, sent.body)
    assert not verify(key, headers, sent.body + b" ")
    assert not verify(key, {**headers, "webhook-id": "0" * 24}, sent.body)
    assert not verify(key, {**headers, "webhook-timestamp": str(int(time.time()) - 400)}, sent.body)
    assert not verify(key, {**headers, "webhook-signature": "v1,AAAA v2,AAAA"}, sent.body)


def expect_strangers_are_refused(verify: Verify, key: str, sent: Received) -> None:
    """Without an exception, which could end the program that calls it."""
    headers = {name: value for name, value in sent.headers.items() if name.startswith("webhook-")}
    assert not verify(key, {}, b"")
    for name in headers:
        assert not verify(key, {other: value for other, value in headers.items() if other != name}, sent.body)
    for moment in ("soon", "NaN", "-Infinity", "9" * 5000):
        assert not verify(key, {**headers, "webhook-timestamp": moment}, sent.body)
    for signature in ("v1,\xe9 v1a,\xe9", "v1,\udce9 v1a,\udce9", "v1 v1a", ",", "v1,= v1a,="):
        assert not verify(key, {**headers, "webhook-signature": signature}, sent.body)


def test_samples_verify_with_a_secret(deliveries: dict[str, Any]) -> None:
    (written,) = re.findall(r"(?ms)^```python\n(.*?)```", DOCS)
    (script,) = re.findall(r"(?ms)^```js\n(.*?)```", DOCS)
    shown = code_on_page(deliveries["page"], "verify-secret")
    assert written.strip() == shown
    for key, sent in deliveries["with_secret"]:
        expect(python(shown), key, sent)
        expect(javascript(script), key, sent)
    for verify in (python(shown), javascript(script)):
        expect_strangers_are_refused(verify, *deliveries["with_secret"][0])


def test_samples_verify_with_the_public_key(deliveries: dict[str, Any]) -> None:
    for key, sent in deliveries["with_key"]:
        verify = python(code_on_page(deliveries["page"], "verify-key"))
        expect(verify, key, sent)
        expect_strangers_are_refused(verify, key, sent)
