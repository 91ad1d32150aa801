"""Handles a POST to a registered address, from its headers to its response.

The order is: secret, body as bytes, signature, JSON, handler. Unauthenticated input is never parsed.
"""

import asyncio
import json
import logging
import sqlite3
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from hubgate.receiver import recent
from hubgate.receiver.asgi import Message, Receive, Scope, Send, header_values, respond_error
from hubgate.receiver.body import Body, BodyRejected, Disconnected
from hubgate.receiver.handlers import Delivery
from hubgate.receiver.inbox.store import DONE, StoredDelivery
from hubgate.receiver.inbox.worker import Inbox
from hubgate.receiver.log import ErrorLog, RejectionLog, printable
from hubgate.receiver.payload import PayloadError, WebhookPayload, parse_json, payload_from
from hubgate.receiver.recent import Outcome, RecentDeliveries, create_entry
from hubgate.receiver.request import Request, rebuild_request, without_secrets
from hubgate.receiver.responses import HandlerResponse, response_for, response_without_body
from hubgate.receiver.routes import Endpoint, Routes
from hubgate.receiver.runner import DeliveryState, Key, ProcessedDeliveries, Runner
from hubgate.receiver.verification import ID, DeliveryRejected, Verifier

MAX_ID_LENGTH = 256
# The hub retries after this time, when most handlers have finished.
RETRY_AFTER = (b"retry-after", b"10")

logger = logging.getLogger("hubgate.receiver")


class _Rejected(Exception):
    """The delivery was rejected with this status, before its handler ran."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status, self.text = status, text


@dataclass
class Intake:
    """Authenticates deliveries, then runs their handlers or stores them in the inbox."""

    verifier: Verifier
    routes: Routes
    recent: RecentDeliveries = field(default_factory=RecentDeliveries)
    rejections: RejectionLog = field(default_factory=RejectionLog)
    runner: Runner = field(default_factory=Runner)
    processed: ProcessedDeliveries = field(default_factory=ProcessedDeliveries)
    # Set with `ack="before"`.
    inbox: Inbox | None = None
    inbox_errors: ErrorLog = field(
        default_factory=lambda: ErrorLog("The inbox cannot be written to; deliveries are answered with 503")
    )
    # The event loop has only weak references to tasks.
    running: set[asyncio.Task[HandlerResponse]] = field(default_factory=set)

    def use_inbox(self, file: Path) -> None:
        self.inbox = Inbox(file, self._work)

    async def handle(self, endpoint: Endpoint, scope: Scope, receive: Receive, send: Send) -> None:
        body = Body(scope, receive)
        try:
            request, delivery_id = await self._authenticate(scope, body)
            value, payload = self._read(endpoint, request.content)
        except Disconnected:
            return
        except (DeliveryRejected, BodyRejected) as rejection:
            self._record_rejection(endpoint.path, rejection)
            await _reject_unread(body, send, rejection.status, rejection.text)
            return
        except _Rejected as rejection:
            self._record_rejection(endpoint.path, rejection)
            await respond_error(send, rejection.status, rejection.text)
            return
        delivery = Delivery(endpoint.path, request, value, payload)
        if self.inbox is not None:
            response = await self._store(self.inbox, endpoint, delivery, delivery_id)
        else:
            response = await self._run_directly(endpoint, delivery, delivery_id)
        await response.send(request, send)

    async def _authenticate(self, scope: Scope, body: Body) -> tuple[Request, str | None]:
        headers = scope["headers"] = list(scope["headers"])
        signed = self.verifier.check_headers(headers)
        content = await body.read()
        if signed:
            self.verifier.check_body(headers, content, time.time())
        ids = header_values(headers, ID)
        if len(ids) > 1 or any(len(value) > MAX_ID_LENGTH for value in ids):
            raise _Rejected(400, "webhook-id is malformed.")
        return Request(scope, content), (ids[0].decode("latin-1") or None) if ids else None

    def _read(self, endpoint: Endpoint, body: bytes) -> tuple[object, WebhookPayload | None]:
        try:
            value = parse_json(body)
            return value, payload_from(value)
        except PayloadError as error:
            if endpoint.needs_payload:
                raise _Rejected(422, str(error)) from None
            return None, None

    async def _run_directly(self, endpoint: Endpoint, delivery: Delivery, delivery_id: str | None) -> HandlerResponse:
        key = (endpoint.path, delivery_id or uuid.uuid4().hex)
        state = self.processed.begin(key)
        if state is DeliveryState.RUNNING:
            # A 2xx would stop the hub's retries before the outcome is known.
            return HandlerResponse(503, _json_body("error", "This delivery is still being processed."), RETRY_AFTER)
        if state is DeliveryState.DONE:
            self._record_outcome(endpoint.path, delivery.payload, delivery_id, recent.DUPLICATE, 200)
            return HandlerResponse(200, _json_body("status", "already processed"))
        work = asyncio.create_task(self._run_to_end(key, endpoint, delivery))
        self.running.add(work)
        work.add_done_callback(self.running.discard)
        # Some servers cancel the request when the sender disconnects. A handler in a thread would continue unnoticed.
        return await asyncio.shield(work)

    async def _run_to_end(self, key: Key, endpoint: Endpoint, delivery: Delivery) -> HandlerResponse:
        response: HandlerResponse | None = None
        try:
            response = await self._run(endpoint, delivery, response_for)
        finally:
            self.processed.end(key, succeeded=response is not None and response.succeeded)
        return response

    async def _store(
        self, inbox: Inbox, endpoint: Endpoint, delivery: Delivery, delivery_id: str | None
    ) -> HandlerResponse:
        plan = endpoint.plan_for(delivery.payload)
        if plan is None:
            return await self._run(endpoint, delivery, response_without_body)
        try:
            # Validate now: later the sender can no longer be notified that the handler's model rejects the payload.
            plan.bind(delivery)
            stored = without_secrets(delivery.request.scope["headers"])
            state = await inbox.put(endpoint.path, delivery_id or uuid.uuid4().hex, stored, delivery.request.content)
        except PayloadError as error:
            self._record_rejection(endpoint.path, _Rejected(422, str(error)), delivery.payload, delivery_id)
            return HandlerResponse(422, _json_body("error", str(error)))
        except sqlite3.Error as error:
            self.inbox_errors.add(error)
            return HandlerResponse(503, _json_body("error", "The inbox cannot be written to."), RETRY_AFTER)
        self.inbox_errors.reset()
        if state == DONE:
            self._record_outcome(endpoint.path, delivery.payload, delivery_id, recent.DUPLICATE, 200)
            return HandlerResponse(200, _json_body("status", "already processed"))
        self._record_outcome(endpoint.path, delivery.payload, delivery_id, recent.STORED, 202)
        return HandlerResponse(202, _json_body("status", "accepted"))

    async def _work(self, stored: StoredDelivery) -> bool:
        """Run a delivery from the inbox."""
        endpoint = self.routes.endpoints.get(stored.path)
        if endpoint is None:
            logger.error(
                "Delivery %s is in the inbox for %s, which is no longer registered",
                printable(stored.delivery_id),
                stored.path,
            )
            return False
        request = rebuild_request(stored.path, stored.headers, stored.body)
        try:
            value, payload = self._read(endpoint, stored.body)
        except _Rejected:
            logger.exception("Delivery %s is not valid for the current handler", printable(stored.delivery_id))
            return False
        return (
            await self._run(endpoint, Delivery(stored.path, request, value, payload), response_without_body)
        ).succeeded

    async def _run(
        self, endpoint: Endpoint, delivery: Delivery, to_response: Callable[[object], HandlerResponse]
    ) -> HandlerResponse:
        delivery_id = delivery.request.delivery_id
        plan = endpoint.plan_for(delivery.payload)
        if plan is None:
            self._record_outcome(endpoint.path, delivery.payload, delivery_id, recent.UNHANDLED, 200)
            return HandlerResponse(200, _json_body("status", "no handler for this event"))
        began = time.monotonic()
        try:
            response = await self.runner.run(plan, plan.bind(delivery), delivery, to_response)
        except PayloadError as error:
            response = HandlerResponse(422, _json_body("error", str(error)))
        outcome = recent.DONE if response.succeeded else recent.FAILED
        self._record_outcome(
            endpoint.path, delivery.payload, delivery_id, outcome, response.status, time.monotonic() - began
        )
        return response

    def _record_rejection(
        self,
        path: str,
        rejection: DeliveryRejected | BodyRejected | _Rejected,
        payload: WebhookPayload | None = None,
        delivery_id: str | None = None,
    ) -> None:
        self.recent.add(create_entry(path, payload, delivery_id, recent.REJECTED, rejection.status))
        self.rejections.add(path, rejection.status, rejection.text, time.monotonic())

    def _record_outcome(
        self,
        path: str,
        payload: WebhookPayload | None,
        delivery_id: str | None,
        outcome: Outcome,
        status: int,
        seconds: float | None = None,
    ) -> None:
        shown = create_entry(path, payload, delivery_id, outcome, status, seconds)
        self.recent.add(shown)
        logger.info("%s %s %s: %s, %s", path, shown.event or "-", shown.repo or "-", outcome.word.lower(), status)


async def _reject_unread(body: Body, send: Send, status: int, text: str) -> None:
    """Send the response at once, but end it after draining the request: servers disconnect when a response ends."""

    async def send_and_drain(message: Message) -> None:
        if message["type"] == "http.response.body":
            await send({**message, "more_body": True})
            await body.drain()
            message = {"type": "http.response.body", "body": b""}
        await send(message)

    await respond_error(send_and_drain, status, text)


def _json_body(name: str, text: str) -> bytes:
    return json.dumps({name: text}).encode()
