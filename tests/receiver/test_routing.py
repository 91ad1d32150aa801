"""Routing by address, kind and type, and rejected requests."""

from typing import Any

import pytest
from tests.bed.receiver_library import SECRET, post, serve_receiver

from hubgate.receiver import WebhookPayload, WebhooksServer
from hubgate.receiver.body import MAX_BYTES
from hubgate.receiver.testing import Deliverer, SignedDelivery, signed_delivery


@pytest.fixture
def app() -> WebhooksServer:
    return WebhooksServer(webhook_secret=SECRET)


def handler() -> str:
    return "called"


def test_address_is_the_function_name_or_the_given_name(app: WebhooksServer) -> None:
    assert app.add_webhook(handler) is handler
    assert app.add_webhook("/say_hello")(handler) is handler
    app.add_webhook("deep/er/")(handler)
    assert app.addresses == ["/webhooks/handler", "/webhooks/say_hello", "/webhooks/deep/er"]
    assert app.registered_webhooks["/webhooks/say_hello"] is handler
    with Deliverer(app) as deliver:
        for path in (*app.addresses, "/webhooks/handler/"):
            assert deliver("repo.create", to=path).json() == "called"


@pytest.mark.parametrize("name", ["", "/", " ", "a?b", "a#b", "a\\b"])
def test_invalid_names_are_rejected(app: WebhooksServer, name: str) -> None:
    with pytest.raises(ValueError, match="cannot have the name"):
        app.add_webhook(name)(handler)


def test_address_can_be_registered_once(app: WebhooksServer) -> None:
    app.add_webhook(handler)
    with pytest.raises(ValueError, match="/webhooks/handler is already registered"):
        app.add_webhook("handler")(lambda: None)
    app.on("repo")(handler)
    with pytest.raises(ValueError, match="already registered"):
        app.on("repo")(handler)
    with pytest.raises(ValueError, match="/webhooks/events is already registered"):
        app.add_webhook("events")(handler)


def test_most_specific_handler_is_called(app: WebhooksServer) -> None:
    called: list[str] = []

    def on(kind: str, repo_type: str | None = None) -> None:
        @app.on(kind, type=repo_type)
        def note(payload: WebhookPayload) -> str:
            called.append(f"{kind} {repo_type or ''}".strip())
            return called[-1]

    on("repo.content", "dataset")
    on("repo.content")
    on("repo", "dataset")
    on("repo")
    on("repo.config.update")
    on("discussion")
    cases: list[tuple[str | dict[str, Any], str, str]] = [
        ("repo.content.update", "dataset", "repo.content dataset"),
        ("repo.content.update", "model", "repo.content"),
        ("repo.create", "dataset", "repo dataset"),
        ("repo.create", "space", "repo"),
        ("repo.config.update", "dataset", "repo.config.update"),
        ("discussion.comment.create", "model", "discussion"),
    ]
    with Deliverer(app) as deliver:
        for kind, repo_type, expected in cases:
            assert deliver(kind, type=repo_type).json() == expected, kind
        newer = {"event": {"scope": "repo.content.lfs", "action": "shrink"}, "repo": {"type": "dataset", "name": "a/b"}}
        assert deliver(newer).json() == "repo.content dataset", "a scope of tomorrow falls back to one of today"
    assert len(called) == len(cases) + 1


@pytest.mark.parametrize("kind", ["", " ", 5, None, handler])
def test_invalid_kinds_are_rejected(app: WebhooksServer, kind: Any) -> None:
    """The last as a decorator without its parentheses gives it."""
    with pytest.raises(ValueError, match=r'such as "repo\.content"'):
        app.on(kind)


@pytest.mark.parametrize("repo_type", ["datasets", "", "Model", 5])
def test_invalid_types_are_rejected(app: WebhooksServer, repo_type: Any) -> None:
    with pytest.raises(ValueError, match="type must be one of model, dataset, space, not"):
        app.on("repo.content", type=repo_type)
    assert app.addresses == []


def test_unhandled_kind_is_answered_200(app: WebhooksServer) -> None:
    app.on("discussion")(handler)
    with Deliverer(app) as deliver:
        passed = deliver("repo.create")
        assert (passed.status, passed.json()) == (200, {"status": "no handler for this event"})


def test_scope_with_many_dots_is_cheap(app: WebhooksServer) -> None:
    app.on("a")(handler)
    with Deliverer(app) as deliver:
        endless = {"event": {"scope": "a" + "." * 900_000, "action": "x"}, "repo": {"type": "model", "name": "a/b"}}
        assert deliver(endless).json() == "called"


def test_star_handles_all_other_kinds(app: WebhooksServer) -> None:
    app.on("*")(handler)
    app.on("repo", type="model")(lambda: "repo")
    with Deliverer(app) as deliver:
        assert deliver("discussion.create").json() == "called"
        assert deliver("repo.create", type="space").json() == "called"


def test_only_posts_to_known_addresses(app: WebhooksServer) -> None:
    app.add_webhook(handler)
    with serve_receiver(app) as client:
        for method in ("GET", "HEAD", "PUT", "DELETE", "OPTIONS"):
            answer = client.request(method, "/webhooks/handler")
            assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
        for path in ("/webhooks/other", "/webhooks", "/webhooks/handler/more", "/handler", "//webhooks/handler"):
            assert client.post(path).status_code == 404, path
        assert client.post("/").status_code == 405


def test_large_bodies_are_rejected(app: WebhooksServer) -> None:
    app.add_webhook(handler)
    with serve_receiver(app) as client:
        headers = {"X-Webhook-Secret": SECRET}
        assert client.post("/webhooks/handler", content=b" " * MAX_BYTES, headers=headers).status_code == 200
        too_long = b" " * (MAX_BYTES + 1)
        assert client.post("/webhooks/handler", content=too_long, headers=headers).status_code == 413
        few = (b" " * 100_000 for _ in range(9))
        assert client.post("/webhooks/handler", content=few, headers=headers).status_code == 200
        pieces = (b" " * 100_000 for _ in range(12))
        assert client.post("/webhooks/handler", content=pieces, headers=headers).status_code == 413


@pytest.mark.parametrize("given", [b"", b"{", b"[]", b'{"event": 5}', b'{"event": {"scope": "repo", "action": "x"}}'])
def test_invalid_payload_is_422(app: WebhooksServer, given: bytes) -> None:
    @app.add_webhook
    def reads(payload: WebhookPayload) -> None:
        raise AssertionError

    app.on("repo")(handler)
    with serve_receiver(app) as client:
        for path in app.addresses:
            answer = post(client, path, SignedDelivery({"X-Webhook-Secret": SECRET}, given))
            assert answer.status_code == 422
            assert answer.json()["error"]


def test_long_ids_are_rejected(app: WebhooksServer) -> None:
    app.add_webhook(handler)
    with serve_receiver(app) as client:
        delivery = signed_delivery("repo.create", secret=SECRET, id="x" * 257)
        assert post(client, "/webhooks/handler", delivery).status_code == 400
        assert (
            post(client, "/webhooks/handler", signed_delivery("repo.create", secret=SECRET, id="x" * 256)).status_code
            == 200
        )
