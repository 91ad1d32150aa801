"""Parameters of handlers, their return values and exceptions, and where handlers run."""

import asyncio
import contextvars
import dataclasses
import datetime
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any

import pytest
from starlette.exceptions import HTTPException
from starlette.requests import Request as StarletteRequest
from starlette.responses import JSONResponse
from tests.bed.receiver_library import SECRET, post, serve_receiver

from hubgate.depth import delivery_depth
from hubgate.receiver import PayloadError, Request, WebhookPayload, WebhooksServer
from hubgate.receiver.testing import Deliverer, signed_delivery


@pytest.fixture
def app() -> WebhooksServer:
    return WebhooksServer(webhook_secret=SECRET)


class Model:
    """As pydantic's are asked."""

    def __init__(self, name: str) -> None:
        self.name = name

    @classmethod
    def model_validate(cls, value: dict[str, Any]) -> "Model":
        if "name" not in value.get("mine", {}):
            raise ValueError("mine.name is missing")
        return cls(value["mine"]["name"])


def name_of(payload: WebhookPayload) -> str:
    return payload.repo.name


def unannotated(payload):  # type: ignore[no-untyped-def]
    return payload.repo.name


def another_name(event):  # type: ignore[no-untyped-def]
    return event.repo.name


def as_text(payload: "WebhookPayload") -> str:
    return payload.repo.name


def unknown_text(payload: "Unknown.WebhookPayload") -> str:  # type: ignore[name-defined]  # noqa: F821
    return payload.repo.name  # type: ignore[no-any-return]


def optional(payload: WebhookPayload | None = None) -> str:
    assert payload is not None
    return payload.repo.name


def annotated(payload: Annotated[WebhookPayload, "note"]) -> str:
    return payload.repo.name


def positional(payload: WebhookPayload, /) -> str:
    return payload.repo.name


def named(*, payload: WebhookPayload, retries: int = 3) -> str:
    return payload.repo.name


def mapping(event: dict[str, Any]) -> str:
    return str(event["repo"]["name"])


def any_mapping(event: Mapping[str, Any]) -> str:
    return str(event["repo"]["name"])


def both(request: Request, payload: WebhookPayload) -> str:
    assert request.headers["WEBHOOK-ID"] == request.delivery_id
    assert (request.method, request.url.path, request.attempt) == ("POST", "/webhooks/x", 2)
    return payload.repo.name


async def by_request(request) -> str:  # type: ignore[no-untyped-def]
    return str((await request.json())["repo"]["name"])


async def starlettes(request: StarletteRequest) -> str:
    assert request.headers["x-hubgate-attempt"] == "2"
    return str((await request.json())["repo"]["name"])


def raw(body: bytes) -> str:
    return "ada/tiny" if b"ada/tiny" in body else ""


async def asynchronous(payload: WebhookPayload) -> str:
    return payload.repo.name


class Callable:
    __name__ = "callable"

    async def __call__(self, payload: WebhookPayload) -> str:
        return payload.repo.name


@pytest.mark.parametrize(
    "handler",
    [
        name_of,
        unannotated,
        another_name,
        as_text,
        unknown_text,
        optional,
        annotated,
        positional,
        named,
        mapping,
        any_mapping,
        both,
        by_request,
        starlettes,
        raw,
        asynchronous,
        Callable(),
    ],
    ids=lambda handler: handler.__name__,
)
def test_parameters_are_filled_by_annotation_and_name(app: WebhooksServer, handler: Any) -> None:
    assert app.add_webhook("x")(handler) is handler
    with Deliverer(app) as deliver:
        answer = deliver("repo.content.update", attempt=2)
    assert (answer.status, answer.json()) == (200, "ada/tiny")


def test_handler_without_parameters_is_called(app: WebhooksServer) -> None:
    @app.add_webhook
    def poked() -> None:
        pass

    with Deliverer(app) as deliver:
        assert deliver("repo.create").body == b"null"
        headers = deliver.signed_delivery("repo.create").headers
        assert deliver.post("/webhooks/poked", {"X-Webhook-Secret": SECRET}, b"\xff no json").status == 200
        assert headers["X-Webhook-Secret"] == SECRET


def test_handler_can_use_its_own_pydantic_model(app: WebhooksServer) -> None:
    @app.add_webhook
    def modelled(mine: Model) -> str:
        return mine.name

    with Deliverer(app) as deliver:
        assert deliver("repo.create", mine={"name": "x"}).json() == "x"
        refused = deliver("repo.create")
        assert (refused.status, refused.json()) == (422, {"error": "mine.name is missing"})


def test_parameter_that_cannot_be_filled_is_rejected(app: WebhooksServer) -> None:
    def confused(payload: WebhookPayload, database: int) -> None: ...

    with pytest.raises(TypeError, match="confused: a delivery has no value for the parameter 'database'"):
        app.add_webhook(confused)


@dataclasses.dataclass
class Point:
    x: int
    at: datetime.datetime


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (None, None),
        ({"processed": True}, {"processed": True}),
        ([1, "é\ud800"], [1, "é\ud800"]),
        (Point(1, datetime.datetime(2030, 1, 2, tzinfo=datetime.UTC)), {"x": 1, "at": "2030-01-02T00:00:00+00:00"}),
        ({"one"}, ["one"]),
    ],
)
def test_return_value_is_the_response(app: WebhooksServer, value: object, told: object) -> None:
    @app.add_webhook
    def said() -> object:
        return value

    with Deliverer(app) as deliver:
        answer = deliver("repo.create")
    assert (answer.status, answer.json()) == (200, told)
    assert answer.headers["content-type"] == "application/json"


def test_payload_can_be_returned(app: WebhooksServer) -> None:
    @app.add_webhook
    def echo(payload: WebhookPayload) -> object:
        return {"repo": payload.repo}

    with Deliverer(app) as deliver:
        assert deliver("repo.create").json()["repo"]["name"] == "ada/tiny"


def test_starlette_responses_are_sent(app: WebhooksServer) -> None:
    @app.add_webhook
    async def said() -> JSONResponse:
        return JSONResponse({"queued": 3}, status_code=201, headers={"x-mine": "1"})

    with Deliverer(app) as deliver:
        answer = deliver("repo.create")
    assert (answer.status, answer.json(), answer.headers["x-mine"]) == (201, {"queued": 3}, "1")


def test_starlette_http_exceptions_are_sent(app: WebhooksServer) -> None:
    @app.add_webhook
    def refuses() -> None:
        raise HTTPException(409, "not now", headers={"Retry-After": "60"})

    with Deliverer(app) as deliver:
        answer = deliver("repo.create")
    assert (answer.status, answer.json(), answer.headers["Retry-After"]) == (409, {"detail": "not now"}, "60")


@pytest.mark.parametrize("given", [{"detail": {(1, 2): "x"}}, {"detail": "x", "headers": {"X-Name": "日本"}}])
def test_invalid_http_exceptions_are_500(
    app: WebhooksServer, caplog: pytest.LogCaptureFixture, given: dict[str, Any]
) -> None:
    @app.add_webhook
    def refuses() -> None:
        raise HTTPException(409, **given)

    with Deliverer(app) as deliver:
        assert deliver("repo.create").status == 500


def test_response_without_a_body(app: WebhooksServer) -> None:
    @app.add_webhook
    def nothing() -> None:
        raise HTTPException(204, headers={"x-mine": "1"})

    with serve_receiver(app) as client:
        for _ in range(2):
            answer = post(client, "/webhooks/nothing", signed_delivery("repo.create", secret=SECRET))
            assert (answer.status_code, answer.content, answer.headers["x-mine"]) == (204, b"", "1")


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("a secret inside"),
        StopIteration(5),
        PayloadError("its own"),
        SystemExit(3),
        asyncio.CancelledError(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_other_exceptions_are_500_without_details(
    app: WebhooksServer, caplog: pytest.LogCaptureFixture, error: BaseException
) -> None:
    @app.add_webhook
    def breaks() -> None:
        raise error

    @app.add_webhook
    async def breaks_too() -> None:
        raise error

    with Deliverer(app) as deliver:
        for path in app.addresses:
            answer = deliver("repo.create", to=path)
            assert (answer.status, answer.json()) == (500, {"error": "The handler failed."})
    assert caplog.text.count("Traceback") >= 2


ENDLESS: list[object] = []
ENDLESS.append(ENDLESS)


@pytest.mark.parametrize(
    "value",
    [object(), float("nan"), {1: object()}, {(1, 2): 3}, b"bytes", ENDLESS],
    ids=["object", "nan", "inside", "key", "bytes", "endless"],
)
def test_return_value_that_is_not_json_is_a_failure(
    app: WebhooksServer, caplog: pytest.LogCaptureFixture, value: object
) -> None:
    @app.add_webhook
    def odd() -> object:
        return value

    with Deliverer(app) as deliver:
        assert deliver("repo.create").status == 500


def test_sync_handlers_run_concurrently_in_threads(app: WebhooksServer) -> None:
    together = threading.Barrier(3, timeout=60)

    @app.add_webhook
    def waits() -> str:
        together.wait()
        return threading.current_thread().name

    with serve_receiver(app) as client:
        sends = [
            threading.Thread(
                target=post, args=(client, "/webhooks/waits", signed_delivery("repo.create", secret=SECRET))
            )
            for _ in range(2)
        ]
        for one in sends:
            one.start()
        together.wait()
        for one in sends:
            one.join(60)
        # A loop that was blocked would not have let both in.
        assert not together.broken


def test_depth_is_set_in_sync_and_async_handlers(app: WebhooksServer) -> None:
    @app.add_webhook
    def sync() -> int | None:
        return delivery_depth.get()

    @app.add_webhook("async")
    async def asynchronous_depth() -> int | None:
        return delivery_depth.get()

    with Deliverer(app) as deliver:
        for path in app.addresses:
            assert deliver("repo.create", to=path, depth=3).json() == 3
            assert deliver("repo.create", to=path).json() == 0
    assert delivery_depth.get() is None


def test_depth_is_set_in_threads_that_copy_the_context(app: WebhooksServer) -> None:
    @app.add_webhook
    def with_a_pool() -> list[int | None]:
        with ThreadPoolExecutor(1) as pool:
            alone = pool.submit(delivery_depth.get)
            in_context = pool.submit(contextvars.copy_context().run, delivery_depth.get)
            return [alone.result(), in_context.result()]

    with Deliverer(app) as deliver:
        assert deliver("repo.create", depth=3).json() == [None, 3]


def test_repr_of_headers_hides_secrets(app: WebhooksServer) -> None:
    @app.add_webhook
    def shown(request: Request) -> str:
        return repr(request.headers)

    with Deliverer(app) as deliver:
        assert SECRET not in deliver("repo.create").json()
