"""Authentication of deliveries by secret, signature and key, over HTTP."""

import base64
import hashlib
import hmac
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import httpx
import pytest
from tests.bed.receiver_library import SECRET, post, serve_receiver

from hubgate.receiver import WebhookPayload, WebhooksServer
from hubgate.receiver.testing import Deliverer, SignedDelivery, new_key, new_secret, signed_delivery

OLD = "the one before"
KEY, OTHER_KEY = new_key(), new_key()


@dataclass
class Ground:
    client: httpx.Client
    ran: list[str] = field(default_factory=list)

    def send(self, delivery: SignedDelivery, **headers: str | None) -> int:
        """`headers` replace or, with None, remove; `_` stands for a dash."""
        changed = {**delivery.headers, **{name.replace("_", "-"): value for name, value in headers.items()}}
        kept = {name: value for name, value in changed.items() if value is not None}
        before = len(self.ran)
        answer = post(self.client, "/webhooks/heard", SignedDelivery(kept, delivery.body))
        assert (len(self.ran) > before) == (answer.status_code == 200), "it runs exactly when it is let in"
        return answer.status_code


def ground(app: WebhooksServer) -> Iterator[Ground]:
    with serve_receiver(app) as client:
        made = Ground(client)

        @app.add_webhook
        def heard(payload: WebhookPayload) -> None:
            made.ran.append(payload.kind)

        yield made


@pytest.fixture(scope="module")
def with_secret() -> Iterator[Ground]:
    yield from ground(WebhooksServer(webhook_secret=SECRET))


@pytest.fixture(scope="module")
def with_two() -> Iterator[Ground]:
    yield from ground(WebhooksServer(webhook_secret=[SECRET, OLD]))


@pytest.fixture(scope="module")
def with_key() -> Iterator[Ground]:
    yield from ground(WebhooksServer(public_key=KEY.public))


@pytest.fixture(scope="module")
def with_both() -> Iterator[Ground]:
    yield from ground(WebhooksServer(webhook_secret=SECRET, public_key=[OTHER_KEY.public, KEY.public]))


def right(**more: object) -> SignedDelivery:
    return signed_delivery("repo.create", secret=SECRET, **more)  # type: ignore[arg-type]


def test_deliveries_of_the_hub_are_accepted(with_secret: Ground) -> None:
    assert with_secret.send(right()) == 200


def test_secret_header_alone_is_accepted(with_secret: Ground) -> None:
    assert with_secret.send(right(), webhook_signature=None) == 200
    assert with_secret.send(right(), webhook_signature=None, webhook_id=None, webhook_timestamp=None) == 200


def test_signature_alone_is_accepted(with_secret: Ground) -> None:
    assert with_secret.send(right(), X_Webhook_Secret=None) == 200


def test_missing_is_401_and_wrong_is_403(with_secret: Ground) -> None:
    assert with_secret.send(signed_delivery("repo.create")) == 401
    for wrong in ("wrong", "", SECRET + "x", SECRET[:-1], SECRET.upper()):
        assert with_secret.send(signed_delivery("repo.create"), X_Webhook_Secret=wrong) == 403, wrong
    assert with_secret.send(signed_delivery("repo.create", secret="wrong"), X_Webhook_Secret=None) == 403


def test_secret_and_signature_must_both_be_valid(with_secret: Ground) -> None:
    assert with_secret.send(signed_delivery("repo.create", secret="wrong"), X_Webhook_Secret=SECRET) == 403
    assert with_secret.send(right(), X_Webhook_Secret="wrong") == 403
    forged = right()
    assert with_secret.send(SignedDelivery(forged.headers, forged.body.replace(b"tiny", b"evil"))) == 403
    assert with_secret.send(right(), webhook_id="another") == 403


@pytest.mark.parametrize(
    "malformed",
    [
        "",
        "v1",
        "v1,",
        "v1,===",
        "v1,a",
        "garbage",
        "v1," + "A" * 8000,
        " ".join(["v1,QUJD"] * 17),
        ",",
        "v1a",
        "v1,QUJD v1",
    ],
)
def test_malformed_signature_is_never_accepted(with_secret: Ground, malformed: str) -> None:
    wanted = 403 if malformed.startswith("v1,AAA") else 401
    assert with_secret.send(right(), webhook_signature=malformed, X_Webhook_Secret=None) == wanted
    assert with_secret.send(right(), webhook_signature=malformed) == wanted, "the secret does not excuse it"


LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


def test_changed_signature_is_rejected() -> None:
    """The last one too, though it has two bits more than the signature needs."""
    app = WebhooksServer(webhook_secret=SECRET)
    app.add_webhook("heard")(lambda: None)
    delivery = signed_delivery("repo.create", secret=SECRET)
    del delivery.headers["X-Webhook-Secret"]
    good = delivery.headers["webhook-signature"]
    assert good.startswith("v1,")
    assert good.endswith("=")
    with Deliverer(app) as deliver:
        for at in range(len("v1,"), len(good) - 1):
            for letter in LETTERS if at == len(good) - 2 else LETTERS[:2]:
                changed = good[:at] + letter + good[at + 1 :]
                delivery.headers["webhook-signature"] = changed
                assert deliver(delivery).status in ((200,) if changed == good else (401, 403)), changed
        for changed in (good[:-1], good + "=", good.replace("=", "A"), f"{good} {good}"[:-1], "V" + good[1:]):
            delivery.headers["webhook-signature"] = changed
            assert deliver(delivery).status in (401, 403), changed


def test_signature_requires_id_and_timestamp(with_secret: Ground) -> None:
    for name in ("webhook_id", "webhook_timestamp"):
        assert with_secret.send(right(), **{name: None}) == 401
    for time_text in ("", "now", "-1", "1e9", "9" * 13, "12.5"):
        assert with_secret.send(right(), webhook_timestamp=time_text) == 401, time_text


def test_timestamp_may_differ_by_five_minutes(with_secret: Ground) -> None:
    now = time.time()
    for seconds in (-290, 290):
        assert with_secret.send(right(at=now + seconds), X_Webhook_Secret=None) == 200
    for seconds in (-310, 310, -(10**9)):
        assert with_secret.send(right(at=now + seconds), X_Webhook_Secret=None) == 401
        assert with_secret.send(right(at=now + seconds)) == 401, "nor with the secret beside it"


def test_repeated_headers_are_rejected(with_secret: Ground) -> None:
    delivery = right()
    twice = [(name, value) for name, value in delivery.headers.items() for _ in range(2 if "ecret" in name else 1)]
    assert with_secret.client.post("/webhooks/heard", headers=twice, content=delivery.body).status_code == 403
    for doubled in ("webhook-signature", "webhook-id", "webhook-timestamp"):
        pairs = [*delivery.headers.items(), (doubled, delivery.headers[doubled])]
        assert with_secret.client.post("/webhooks/heard", headers=pairs, content=delivery.body).status_code == 401


def test_several_secrets_are_accepted_during_a_rotation(with_two: Ground) -> None:
    assert with_two.send(right()) == 200
    assert with_two.send(signed_delivery("repo.create", secret=OLD)) == 200
    assert with_two.send(signed_delivery("repo.create", secret=SECRET, old_secret=OLD)) == 200
    assert with_two.send(signed_delivery("repo.create", secret=SECRET, old_secret="unknown here")) == 200
    assert with_two.send(signed_delivery("repo.create", secret="neither")) == 403


def test_whsec_secret_is_decoded_for_the_signature() -> None:
    secret = new_secret()
    delivery = signed_delivery("repo.create", secret=secret)
    content = f"{delivery.id}.{delivery.headers['webhook-timestamp']}.".encode() + delivery.body
    digest = hmac.digest(base64.b64decode(secret.removeprefix("whsec_")), content, hashlib.sha256)
    assert delivery.headers["webhook-signature"] == "v1," + base64.b64encode(digest).decode()
    for ground_made in ground(WebhooksServer(webhook_secret=secret)):
        assert ground_made.send(delivery, X_Webhook_Secret=None) == 200
        assert ground_made.send(signed_delivery("repo.create", secret=secret)) == 200


def test_public_key_verifies_v1a_signatures(with_key: Ground) -> None:
    delivery = signed_delivery("repo.create", key=KEY)
    assert with_key.send(delivery) == 200
    assert with_key.send(signed_delivery("repo.create", key=OTHER_KEY)) == 403
    assert with_key.send(SignedDelivery(delivery.headers, delivery.body + b" ")) == 403
    assert with_key.send(signed_delivery("repo.create")) == 401
    assert with_key.send(right()) == 401, "a secret nobody set proves nothing"
    assert with_key.send(signed_delivery("repo.create", key=KEY, at=time.time() - 400)) == 401
    assert with_key.send(delivery, webhook_signature="v1a,QUJD") == 403
    assert with_key.send(delivery, webhook_signature="v1a,!") == 401


def test_public_key_does_not_replace_the_secret(with_both: Ground) -> None:
    keyed = signed_delivery("repo.create", key=KEY)
    assert with_both.send(keyed) == 401
    assert with_both.send(keyed, X_Webhook_Secret="wrong") == 403
    assert with_both.send(keyed, X_Webhook_Secret=SECRET) == 200
    assert with_both.send(right()) == 200
    forged = SignedDelivery({**keyed.headers, "X-Webhook-Secret": SECRET}, keyed.body + b" ")
    assert with_both.send(forged) == 403, "what is signed has to fit all the same"


def test_without_secret_or_key_all_deliveries_are_accepted(caplog: pytest.LogCaptureFixture) -> None:
    app = WebhooksServer()
    assert "anybody who can reach" in caplog.text
    for made in ground(app):
        assert made.send(signed_delivery("repo.create")) == 200
        assert made.send(signed_delivery("repo.create", secret="any", at=5)) == 200


def test_secret_is_read_from_the_environment(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setenv("WEBHOOK_SECRET", f"{SECRET}\n")
    assert WebhooksServer().secrets == (SECRET,)
    assert WebhooksServer(webhook_secret="mine").secrets == ("mine",)
    assert WebhooksServer(webhook_secret=["of a file\n", "old"]).secrets == ("of a file", "old")
    assert caplog.text == ""


def test_secret_must_be_a_string() -> None:
    for wrong in (b"bytes", [b"bytes"], [5]):
        with pytest.raises(TypeError, match="webhook_secret takes a string"):
            WebhooksServer(webhook_secret=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("empty", ["", " ", [], [""], ["good", "\n"], "whsec_"])
def test_empty_secret_is_rejected(empty: str | list[str]) -> None:
    with pytest.raises(ValueError, match="empty"):
        WebhooksServer(webhook_secret=empty)
    if empty != "whsec_":
        with pytest.raises(ValueError, match="empty"):
            WebhooksServer(public_key=empty)


@pytest.mark.parametrize("key", ["whpk_", "whpk_!!", "whpk_" + base64.b64encode(b"short").decode(), SECRET])
def test_invalid_public_key_is_rejected(key: str) -> None:
    with pytest.raises(ValueError, match="whpk_"):
        WebhooksServer(public_key=key)
