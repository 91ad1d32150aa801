"""Random headers and bodies never cause a 500, and never run a handler without the right secret."""

import contextlib
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.bed.receiver_library import SECRET

from hubgate.receiver import Request, WebhookPayload, WebhooksServer
from hubgate.receiver.testing import Deliverer, Response, new_key, signed_delivery

KEY = new_key()
GOOD = signed_delivery("repo.content.update", secret=SECRET)
KEYED = signed_delivery("repo.content.update", key=KEY)
NAMES = [
    "x-webhook-secret",
    "webhook-id",
    "webhook-timestamp",
    "webhook-signature",
    "x-hubgate-depth",
    "x-hubgate-attempt",
    "content-type",
    "content-length",
    "host",
    "transfer-encoding",
]
PRESENT = [value for one in (GOOD, KEYED) for value in one.headers.values()] + [str(int(time.time())), "v1,QUJD", ""]
any_bytes = st.binary(max_size=60) | st.sampled_from([value.encode() for value in PRESENT])
headers = st.lists(st.tuples(st.sampled_from([name.encode() for name in NAMES]) | st.binary(max_size=12), any_bytes))
# Of those who are let in.
ODD = [
    GOOD.body,
    b"[" * 5000,
    b"9" * 9000,
    GOOD.body[:-1] + b', "x": 1e999}',
    GOOD.body[:-1] + b', "x": ' + b"[" * 900 + b"]" * 900 + b"}",
    GOOD.body.replace(b"ada/tiny", b"ada/\\ud800\\n\\u202e"),
]
json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["event", "repo", "action", "scope", "type", "name", "updatedRefs"]), inner)
    ),
    max_leaves=20,
)


@dataclass
class Ground:
    deliver: Deliverer
    app: WebhooksServer
    ran: list[str] = field(default_factory=list)


@contextlib.contextmanager
def ground(app: WebhooksServer) -> Iterator[Ground]:
    with Deliverer(app) as deliver:
        made = Ground(deliver, app)

        @app.add_webhook
        def reads(payload: WebhookPayload, request: Request) -> None:
            made.ran.append(f"{payload.kind} {request.depth} {request.attempt} {request.query_params}")

        @app.add_webhook
        async def takes_all(request: Request) -> None:
            made.ran.append(repr(request.headers))

        @app.on("repo")
        def by_kind(payload: WebhookPayload) -> object:
            made.ran.append(payload.repo.type)
            return payload

        yield made


@pytest.fixture(scope="module")
def locked() -> Iterator[Ground]:
    with ground(WebhooksServer(webhook_secret=SECRET, public_key=KEY.public)) as made:
        yield made


@pytest.fixture(scope="module")
def keyed() -> Iterator[Ground]:
    with ground(WebhooksServer(public_key=KEY.public)) as made:
        yield made


@pytest.fixture(scope="module")
def unlocked() -> Iterator[Ground]:
    with ground(WebhooksServer()) as made:
        yield made


quick = settings(
    deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


def send(where: Ground, path: str, raw: list[tuple[bytes, bytes]], body: bytes) -> Response:
    return where.deliver.raw("POST", path, raw, body)


@quick
@given(raw=headers, body=st.binary(max_size=200))
def test_unauthenticated_requests_are_always_rejected(
    locked: Ground, raw: list[tuple[bytes, bytes]], body: bytes
) -> None:
    kept = [(name, value) for name, value in raw if value != SECRET.encode()]
    for path in locked.app.addresses:
        before = len(locked.ran)
        answer = send(locked, path, kept, body)
        # The length a stranger announces is looked at once there is a signature to check.
        assert answer.status in (401, 403, 413), (answer.status, kept)
        assert len(locked.ran) == before


@quick
@given(raw=headers, body=st.binary(max_size=200))
def test_unauthenticated_requests_are_rejected_with_a_public_key(
    keyed: Ground, raw: list[tuple[bytes, bytes]], body: bytes
) -> None:
    for path in keyed.app.addresses:
        before = len(keyed.ran)
        assert send(keyed, path, raw, body).status in (401, 403, 413)
        assert len(keyed.ran) == before


@quick
@given(raw=headers, value=json_like)
def test_accepted_requests_never_cause_a_500(unlocked: Ground, raw: list[tuple[bytes, bytes]], value: object) -> None:
    for path in unlocked.app.addresses:
        assert send(unlocked, path, raw, _written(value)).status < 500


@quick
@given(raw=headers, body=st.binary(max_size=200) | st.sampled_from(ODD))
def test_requests_with_the_secret_never_cause_a_500(
    locked: Ground, raw: list[tuple[bytes, bytes]], body: bytes
) -> None:
    others = [(name, value) for name, value in raw if name.lower() != b"x-webhook-secret"]
    for path in locked.app.addresses:
        assert send(locked, path, [*others, (b"x-webhook-secret", SECRET.encode())], body).status < 500


@quick
@given(at=st.integers(0, len(GOOD.body) - 1), byte=st.integers(0, 255))
def test_changed_byte_invalidates_the_signature(locked: Ground, at: int, byte: int) -> None:
    # Made now: one from the start of a long run would be refused for its age.
    good = signed_delivery("repo.content.update", secret=SECRET)
    changed = bytearray(good.body)
    changed[at] = byte
    raw = [(name.encode(), value.encode()) for name, value in good.headers.items() if name != "X-Webhook-Secret"]
    expected = 200 if changed == good.body else 403
    for path in locked.app.addresses:
        before = len(locked.ran)
        assert send(locked, path, raw, bytes(changed)).status == expected
        assert (len(locked.ran) > before) == (expected == 200)


@quick
@given(path=st.text(max_size=30), method=st.sampled_from(["GET", "POST", "HEAD", "PUT", "", "\xff"]), raw=headers)
def test_pages_never_cause_a_500(unlocked: Ground, path: str, method: str, raw: list[tuple[bytes, bytes]]) -> None:
    assert unlocked.deliver.raw(method, f"/{path}", raw, b"").status < 500


def _written(value: object) -> bytes:
    return json.dumps(value).encode()
