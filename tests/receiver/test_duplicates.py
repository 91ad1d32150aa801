"""`ack="after"`: the same delivery received twice."""

import asyncio
import threading

import httpx
import pytest
from tests.bed.blocking import run_blocking
from tests.bed.concurrency import run_concurrently
from tests.bed.receiver_library import SECRET, post, serve_receiver

from hubgate.receiver import WebhooksServer
from hubgate.receiver.runner import DeliveryState, ProcessedDeliveries
from hubgate.receiver.testing import Deliverer, signed_delivery


@pytest.fixture
def app() -> WebhooksServer:
    return WebhooksServer(webhook_secret=SECRET)


def test_running_delivery_is_answered_503_with_retry_after(app: WebhooksServer) -> None:
    began, go_on = threading.Event(), threading.Event()
    runs: list[int] = []

    @app.add_webhook
    def slow() -> str:
        runs.append(1)
        began.set()
        assert go_on.wait(60)
        return "done"

    delivery = signed_delivery("repo.create", secret=SECRET)
    answers: list[httpx.Response] = []
    with serve_receiver(app) as client:
        first = threading.Thread(target=lambda: answers.append(post(client, "/webhooks/slow", delivery)))
        first.start()
        assert began.wait(60)
        busy = post(client, "/webhooks/slow", delivery)
        assert (busy.status_code, busy.headers["retry-after"]) == (503, "10")
        go_on.set()
        first.join(60)
        assert answers[0].json() == "done"
        again = post(client, "/webhooks/slow", delivery)
        assert (again.status_code, again.json()) == (200, {"status": "already processed"})
    assert len(runs) == 1


def test_retry_after_a_disconnect_does_not_run_twice(app: WebhooksServer) -> None:
    """Some servers cancel the request then; the handler's thread runs on."""
    began, go_on = threading.Event(), threading.Event()
    runs: list[int] = []

    @app.add_webhook
    def slow() -> None:
        runs.append(1)
        began.set()
        assert go_on.wait(60)

    delivery = signed_delivery("repo.create", secret=SECRET)

    async def leave_and_come_back() -> None:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://x") as client:

            async def sent() -> int:
                answer = await client.post("/webhooks/slow", headers=delivery.headers, content=delivery.body)
                return answer.status_code

            first = asyncio.create_task(sent())
            assert await asyncio.to_thread(began.wait, 60)
            first.cancel()
            await asyncio.gather(first, return_exceptions=True)
            assert first.cancelled()
            assert await sent() == 503
            go_on.set()
            async with asyncio.timeout(60):
                while (status := await sent()) == 503:
                    await asyncio.sleep(0.01)
            assert status == 200

    try:
        run_blocking(leave_and_come_back())
    finally:
        go_on.set()
        app.close()
    assert len(runs) == 1


def test_failed_delivery_runs_again(app: WebhooksServer, caplog: pytest.LogCaptureFixture) -> None:
    runs: list[int] = []

    @app.add_webhook
    async def shaky() -> int:
        runs.append(1)
        if len(runs) < 3:
            raise RuntimeError
        return len(runs)

    with Deliverer(app) as deliver:
        delivery = deliver.signed_delivery("repo.create")
        assert [deliver(delivery).status for _ in range(4)] == [500, 500, 200, 200]
    assert len(runs) == 3


def test_error_status_counts_as_failure(app: WebhooksServer) -> None:
    from starlette.responses import Response

    runs: list[int] = []

    @app.add_webhook
    def refuses() -> Response:
        runs.append(1)
        return Response(status_code=409)

    with Deliverer(app) as deliver:
        delivery = deliver.signed_delivery("repo.create")
        assert [deliver(delivery).status for _ in range(2)] == [409, 409]
    assert len(runs) == 2


def test_deliveries_are_distinguished_by_id_and_address(app: WebhooksServer) -> None:
    runs: list[str] = []
    app.add_webhook("one")(lambda: runs.append("one"))
    app.add_webhook("two")(lambda: runs.append("two"))
    with Deliverer(app) as deliver:
        delivery = deliver.signed_delivery("repo.create")
        for path in ("/webhooks/one", "/webhooks/two", "/webhooks/one"):
            deliver(delivery, to=path)
        deliver("repo.create", to="/webhooks/one")
    assert runs == ["one", "two", "one"]


def test_deliveries_without_an_id_are_always_new(app: WebhooksServer) -> None:
    runs: list[int] = []
    app.add_webhook("x")(lambda: runs.append(1))
    with Deliverer(app) as deliver:
        for _ in range(3):
            assert deliver.post("/webhooks/x", {"X-Webhook-Secret": SECRET}, b"").status == 200
    assert len(runs) == 3


def test_oldest_processed_deliveries_are_forgotten_but_never_running_ones() -> None:
    seen = ProcessedDeliveries(limit=3)
    assert seen.begin(("/", "runs")) is DeliveryState.NEW
    for number in range(5):
        assert seen.begin(("/", str(number))) is DeliveryState.NEW
        seen.end(("/", str(number)), succeeded=True)
    assert [seen.begin(("/", str(number))) for number in (4, 3, 2)] == [DeliveryState.DONE] * 3
    assert seen.begin(("/", "1")) is DeliveryState.NEW
    assert seen.begin(("/", "runs")) is DeliveryState.RUNNING


def test_only_one_of_concurrent_duplicates_runs(app: WebhooksServer) -> None:
    seen = ProcessedDeliveries()
    found = run_concurrently([lambda: seen.begin(("/", "x"))] * 20)
    assert found.count(DeliveryState.NEW) == 1
    assert found.count(DeliveryState.RUNNING) == 19
