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
from hubgate.receiver.answers import Answer, finished, returned
from hubgate.receiver.asgi import Message, Receive, Scope, Send, header_values, refuse
from hubgate.receiver.body import Body, BodyRefused, Gone
from hubgate.receiver.calling import Delivery
from hubgate.receiver.inbox.store import DONE, Kept
from hubgate.receiver.inbox.trouble import Trouble
from hubgate.receiver.inbox.working import Inbox
from hubgate.receiver.payload import PayloadError, WebhookPayload, parsed, read_payload
from hubgate.receiver.recent import Outcome, Recent, entry, plain
from hubgate.receiver.refusals import Refusals
from hubgate.receiver.request import Request, harmless, remade
from hubgate.receiver.routes import Endpoint, Routes
from hubgate.receiver.running import Runner
from hubgate.receiver.seen import Key, Seen, Standing
from hubgate.receiver.verification import ID, Refused, Verifier

MOST_ID_LENGTH = 256
# The hub retries after this time, when most handlers have finished.
RETRY_AFTER = (b"retry-after", b"10")

logger = logging.getLogger("hubgate.receiver")


class _NotRun(Exception):
    """The handler is not run; this is the response."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status, self.text = status, text


@dataclass
class Intake:
    verifier: Verifier
    routes: Routes
    recent: Recent = field(default_factory=Recent)
    refusals: Refusals = field(default_factory=Refusals)
    runner: Runner = field(default_factory=Runner)
    seen: Seen = field(default_factory=Seen)
    # Set with `ack="before"`.
    inbox: Inbox | None = None
    trouble: Trouble = field(
        default_factory=lambda: Trouble("The inbox cannot be written; deliveries are answered 503")
    )
    # The event loop has only weak references to tasks.
    running: set[asyncio.Task[Answer]] = field(default_factory=set)

    def keep_in(self, file: Path) -> None:
        self.inbox = Inbox(file, self._work)

    async def take(self, endpoint: Endpoint, scope: Scope, receive: Receive, send: Send) -> None:
        body = Body(scope, receive)
        try:
            request, delivery_id = await self._authenticate(scope, body)
            value, payload = self._read(endpoint, request.content)
        except Gone:
            return
        except (Refused, BodyRefused) as refusal:
            self._record_refusal(endpoint.path, refusal)
            await _refuse_unread(body, send, refusal.status, refusal.text)
            return
        except _NotRun as refusal:
            self._record_refusal(endpoint.path, refusal)
            await refuse(send, refusal.status, refusal.text)
            return
        delivery = Delivery(endpoint.path, request, value, payload)
        if self.inbox is not None:
            answer = await self._store(self.inbox, endpoint, delivery, delivery_id)
        else:
            answer = await self._run_directly(endpoint, delivery, delivery_id)
        await answer.send(request, send)

    async def _authenticate(self, scope: Scope, body: Body) -> tuple[Request, str | None]:
        headers = scope["headers"] = list(scope["headers"])
        signed = self.verifier.needs_body(headers)
        content = await body.read()
        if signed:
            self.verifier.check_body(headers, content, time.time())
        ids = header_values(headers, ID)
        if len(ids) > 1 or any(len(one) > MOST_ID_LENGTH for one in ids):
            raise _NotRun(400, "webhook-id is malformed.")
        return Request(scope, content), (ids[0].decode("latin-1") or None) if ids else None

    def _read(self, endpoint: Endpoint, body: bytes) -> tuple[object, WebhookPayload | None]:
        try:
            value = parsed(body)
            return value, read_payload(value)
        except PayloadError as error:
            if endpoint.reads:
                raise _NotRun(422, str(error)) from None
            return None, None

    async def _run_directly(self, endpoint: Endpoint, delivery: Delivery, delivery_id: str | None) -> Answer:
        key = (endpoint.path, delivery_id or uuid.uuid4().hex)
        standing = self.seen.begin(key)
        if standing is Standing.RUNNING:
            # A 2xx would stop the hub's retries before the outcome is known.
            return Answer(503, _text("error", "This delivery is still running."), RETRY_AFTER)
        if standing is Standing.DONE:
            self._record_outcome(endpoint.path, delivery.payload, delivery_id, recent.AGAIN, 200)
            return Answer(200, _text("status", "done before"))
        work = asyncio.create_task(self._run_to_end(key, endpoint, delivery))
        self.running.add(work)
        work.add_done_callback(self.running.discard)
        # Some servers cancel the request when the sender disconnects. A handler in a thread would continue unnoticed.
        return await asyncio.shield(work)

    async def _run_to_end(self, key: Key, endpoint: Endpoint, delivery: Delivery) -> Answer:
        answer: Answer | None = None
        try:
            answer = await self._run(endpoint, delivery, returned)
        finally:
            self.seen.end(key, succeeded=answer is not None and answer.succeeded)
        return answer

    async def _store(self, inbox: Inbox, endpoint: Endpoint, delivery: Delivery, delivery_id: str | None) -> Answer:
        plan = endpoint.plan_for(delivery.payload)
        if plan is None:
            return await self._run(endpoint, delivery, finished)
        try:
            # Validate now: later the sender can no longer be notified that the handler's model rejects the payload.
            plan.bound(delivery)
            stored = harmless(delivery.request.scope["headers"])
            state = await inbox.put(endpoint.path, delivery_id or uuid.uuid4().hex, stored, delivery.request.content)
        except PayloadError as error:
            self._record_refusal(endpoint.path, _NotRun(422, str(error)), delivery.payload, delivery_id)
            return Answer(422, _text("error", str(error)))
        except sqlite3.Error as error:
            self.trouble.tell(error)
            return Answer(503, _text("error", "The inbox cannot be written."), RETRY_AFTER)
        self.trouble.is_over()
        if state == DONE:
            self._record_outcome(endpoint.path, delivery.payload, delivery_id, recent.AGAIN, 200)
            return Answer(200, _text("status", "done before"))
        self._record_outcome(endpoint.path, delivery.payload, delivery_id, recent.KEPT, 202)
        return Answer(202, _text("status", "accepted"))

    async def _work(self, stored: Kept) -> bool:
        """Run a delivery from the inbox."""
        endpoint = self.routes.endpoints.get(stored.path)
        if endpoint is None:
            logger.error("%s waits for %s, which is no longer registered", plain(stored.delivery_id), stored.path)
            return False
        request = remade(stored.path, stored.headers, stored.body)
        try:
            value, payload = self._read(endpoint, stored.body)
        except _NotRun:
            logger.exception("%s cannot be read by the handler there is now", plain(stored.delivery_id))
            return False
        return (await self._run(endpoint, Delivery(stored.path, request, value, payload), finished)).succeeded

    async def _run(self, endpoint: Endpoint, delivery: Delivery, answered: Callable[[object], Answer]) -> Answer:
        delivery_id = delivery.request.delivery_id
        plan = endpoint.plan_for(delivery.payload)
        if plan is None:
            self._record_outcome(endpoint.path, delivery.payload, delivery_id, recent.PASSED, 200)
            return Answer(200, _text("status", "no handler for it"))
        began = time.monotonic()
        try:
            answer = await self.runner.run(plan, plan.bound(delivery), delivery, answered)
        except PayloadError as error:
            answer = Answer(422, _text("error", str(error)))
        outcome = recent.DONE if answer.succeeded else recent.FAILED
        self._record_outcome(
            endpoint.path, delivery.payload, delivery_id, outcome, answer.status, time.monotonic() - began
        )
        return answer

    def _record_refusal(
        self,
        path: str,
        refusal: Refused | BodyRefused | _NotRun,
        payload: WebhookPayload | None = None,
        delivery_id: str | None = None,
    ) -> None:
        self.recent.add(entry(path, payload, delivery_id, recent.REFUSED, refusal.status))
        self.refusals.tell(path, refusal.status, refusal.text, time.monotonic())

    def _record_outcome(
        self,
        path: str,
        payload: WebhookPayload | None,
        delivery_id: str | None,
        outcome: Outcome,
        status: int,
        seconds: float | None = None,
    ) -> None:
        shown = entry(path, payload, delivery_id, outcome, status, seconds)
        self.recent.add(shown)
        logger.info("%s %s %s: %s, %s", path, shown.what or "-", shown.repo or "-", outcome.word.lower(), status)


async def _refuse_unread(body: Body, send: Send, status: int, text: str) -> None:
    """Send the response at once, but end it only after the sender has finished: servers disconnect when it ends."""

    async def send_and_drain(message: Message) -> None:
        if message["type"] == "http.response.body":
            await send({**message, "more_body": True})
            await body.drain()
            message = {"type": "http.response.body", "body": b""}
        await send(message)

    await refuse(send_and_drain, status, text)


def _text(name: str, text: str) -> bytes:
    return json.dumps({name: text}).encode()
