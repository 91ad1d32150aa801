"""Without the secret or the key nobody can create a delivery that verifies, or present an old one as new.

Verified by a few lines here, and with public clients in tests/clients.
"""

import base64
import hashlib
import hmac
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from tests.bed.background_delivery import deliver_in_background
from tests.bed.engines import Engine, settings_for
from tests.bed.people import api, create_token, create_user
from tests.bed.repos import create_repo
from tests.bed.running_hub import RunningHub, run_hub
from tests.bed.webhooks import Received, Receiver, create_webhook, run_receiver, settle

PATH = "/api/settings/webhooks"


@pytest.fixture
def hub(engine: Engine, tmp_path: Path) -> Iterator[RunningHub]:
    with run_hub(settings_for(engine.fresh_url(), tmp_path, egress_allow="127.0.0.0/8")) as started:
        yield started


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with run_receiver() as started:
        yield started


def content_of(one: Received, **changed: str) -> bytes:
    said = {**one.headers, **changed}
    return f"{said['webhook-id']}.{said['webhook-timestamp']}.".encode() + one.body


def signed_with(secret: bytes, content: bytes) -> str:
    return "v1," + base64.b64encode(hmac.digest(secret, content, hashlib.sha256)).decode()


def verifies(public_key: str, one: Received, content: bytes) -> bool:
    version, _, text = one.headers["webhook-signature"].partition(",")
    assert version == "v1a"
    key = Ed25519PublicKey.from_public_bytes(base64.b64decode(public_key.removeprefix("whpk_")))
    try:
        key.verify(base64.b64decode(text), content)
    except InvalidSignature:
        return False
    return True


@pytest.mark.one_engine
def test_each_webhook_has_its_own_key(hub: RunningHub, receiver: Receiver) -> None:
    """Eve points a webhook of hers at Ada's receiver: its deliveries do not verify as Ada's."""
    with (
        api(hub, create_token(hub, create_user(hub, "ada"))) as ada,
        api(hub, create_token(hub, create_user(hub, "eve"))) as eve,
    ):
        hers, mine = create_webhook(ada, receiver.url, "user:ada"), create_webhook(eve, receiver.url, "user:ada")
        create_repo(ada, "tiny")
        settle(hub)
        sent = {one.headers["x-hubgate-webhook"]: one for one in receiver.received}
        genuine, forged = sent[hers["id"]], sent[mine["id"]]
        assert hers["publicKey"] != mine["publicKey"]
        assert verifies(hers["publicKey"], genuine, content_of(genuine))
        assert not verifies(hers["publicKey"], forged, content_of(forged))
        for changed in ({"webhook-id": forged.headers["webhook-id"]}, {"webhook-timestamp": "9999999999"}):
            assert not verifies(hers["publicKey"], genuine, content_of(genuine, **changed))
        assert not verifies(hers["publicKey"], genuine, content_of(genuine) + b" ")
        assert eve.post(f"{PATH}/{mine['id']}", json={"publicKey": hers["publicKey"], "watched": []}).status_code in (
            200,
            422,
        )
        assert eve.get(f"{PATH}/{mine['id']}").json()["webhook"]["publicKey"] == mine["publicKey"]


@pytest.mark.one_engine
def test_every_attempt_is_signed_with_its_time(hub: RunningHub, receiver: Receiver) -> None:
    """A receiver can reject old deliveries: an intercepted one that is sent again has its original time."""
    receiver.status = 500
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        webhook = create_webhook(ada, receiver.url, "user:ada", secret="s3cret")
        create_repo(ada, "tiny")
        for _ in range(2):
            settle(hub)
            hub.clock.advance(40)
        (log,) = ada.get(f"{PATH}/{webhook['id']}/logs").json()
        receiver.status = 200
        with deliver_in_background(hub):
            replayed = ada.post(f"{PATH}/{webhook['id']}/replay/{log['id']}").json()["id"]
        first, second = receiver.received[:2]
        third = next(one for one in receiver.received if one.headers["webhook-id"] == replayed)
        assert first.headers["webhook-id"] == second.headers["webhook-id"] != third.headers["webhook-id"]
        times = [int(one.headers["webhook-timestamp"]) for one in (first, second, third)]
        assert times == sorted(set(times))
        for one in (first, second, third):
            assert one.headers["webhook-signature"] == signed_with(b"s3cret", content_of(one))
        assert len({one.headers["webhook-signature"] for one in (first, second, third)}) == 3


@pytest.mark.one_engine
def test_old_secret_signs_only_during_the_overlap(hub: RunningHub, receiver: Receiver) -> None:
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        webhook = create_webhook(ada, receiver.url, "user:ada", secret="old")
        at = f"{PATH}/{webhook['id']}"

        def signatures(number: int) -> tuple[list[str], bytes, str | None]:
            create_repo(ada, f"r{number}")
            settle(hub)
            one = receiver.received[-1]
            found = one.headers["webhook-signature"].split(" ")
            return found, content_of(one), one.headers.get("x-webhook-secret")

        assert ada.post(at, json={"secret": "new", "overlapSeconds": 60}).status_code == 200
        found, content, sent = signatures(1)
        assert (found, sent) == ([signed_with(b"new", content), signed_with(b"old", content)], "new")
        hub.clock.advance(61)
        found, content, sent = signatures(2)
        assert (found, sent) == ([signed_with(b"new", content)], "new")
        # Without an overlap the old secret ends at once, and so does one that an earlier overlap retained.
        ada.post(at, json={"secret": "newer", "overlapSeconds": 60})
        ada.post(at, json={"secret": "newest"})
        found, content, sent = signatures(3)
        assert (found, sent) == ([signed_with(b"newest", content)], "newest")
        ada.post(at, json={"secret": None})
        found, content, sent = signatures(4)
        assert sent is None
        assert verifies(webhook["publicKey"], receiver.received[-1], content)


@pytest.mark.one_engine
def test_setting_the_same_secret_again_retains_the_overlap(hub: RunningHub, receiver: Receiver) -> None:
    """A program that repeats its request, or sends back what it read, must not cut receivers off."""
    with api(hub, create_token(hub, create_user(hub, "ada"))) as ada:
        webhook = create_webhook(ada, receiver.url, "user:ada", secret="old")
        at = f"{PATH}/{webhook['id']}"

        def signing(number: int) -> list[str]:
            create_repo(ada, f"r{number}")
            settle(hub)
            one = receiver.received[-1]
            assert one.headers["x-webhook-secret"] == "new"
            names = {signed_with(secret.encode(), content_of(one)): secret for secret in ("old", "new")}
            return [names[signature] for signature in one.headers["webhook-signature"].split(" ")]

        def say(**body: object) -> None:
            assert ada.post(at, json=body).status_code == 200

        for _ in range(2):
            say(secret="new", overlapSeconds=60)
            assert signing(len(receiver.received)) == ["new", "old"]
        hub.clock.advance(50)
        read = ada.get(at).json()["webhook"]
        say(secret="new", **{name: read[name] for name in ("url", "watched", "domains")})
        assert signing(len(receiver.received)) == ["new", "old"]
        # Set with another overlap, the old secret has that from now on.
        say(secret="new", overlapSeconds=60)
        hub.clock.advance(50)
        assert signing(len(receiver.received)) == ["new", "old"]
        say(secret="new", overlapSeconds=0)
        assert signing(len(receiver.received)) == ["new"]
        # An overlap that ended does not start again: the old secret may have leaked.
        say(secret="new", overlapSeconds=60)
        assert signing(len(receiver.received)) == ["new"]
