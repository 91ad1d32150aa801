"""Sends the requests of deliveries: usually on an idle connection, without a task and without a timer for each."""

import asyncio
import itertools
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from hubgate.server import failpoint
from hubgate.server.egress.connection import Connection, HttpResponse
from hubgate.server.egress.hosted_links import HostedLink
from hubgate.server.egress.resolve import NoFreeSlot, Unreachable
from hubgate.server.egress.target import Target, parse_target
from hubgate.server.egress.tunnel_links import TunnelLink
from hubgate.server.errors import GatewayTimeout, HubError, NotFound
from hubgate.server.webhooks.context import Webhooks
from hubgate.server.webhooks.delivering.webhook_queue import Item
from hubgate.server.webhooks.requests.outcome import Try
from hubgate.server.webhooks.requests.request import Outgoing, Prepared, outgoing
from hubgate.server.webhooks.tunnels.forwarding import ReceiverDown, ReceiverStarting

log = logging.getLogger("hubgate.deliver")

MAX_READ = 64 * 1024


@dataclass(slots=True, eq=False)
class Request:
    """A request in flight."""

    item: Item
    prepared: Prepared
    outgoing: Outgoing
    # Wall clock and monotonic time.
    at: int
    began: float
    is_ended: bool = False
    # It has failed, and the failure is reported later: no response can be received any more.
    is_delayed: bool = False
    connection: Connection | None = None
    task: "asyncio.Task[None] | None" = None


# Called once for each request. The attempt is None if nothing was sent: no slot was free, or the request was aborted.
OnEnded = Callable[[Request, Try | None], None]


@dataclass(eq=False)
class Sender:
    """Sends requests, and reports each outcome once.

    Without a response from a private address, a request takes `silence_seconds`, whether it was blocked, refused or
    timed out: deliveries must reveal nothing about the hub's network (attack W18).
    """

    webhooks: Webhooks
    on_ended: OnEnded
    # None: the whole deadline.
    silence_seconds: float | None = None
    # By delivery id, in the order of their deadlines, because all have the same time.
    _requests: dict[str, Request] = field(default_factory=dict)
    _timer: asyncio.TimerHandle | None = None

    def start(self, item: Item, prepared: Prepared) -> None:
        at = self.webhooks.clock()
        request = Request(item, prepared, outgoing(prepared, item, at), at, time.monotonic())
        failpoint.hit("deliver-before-send")
        self._requests[item.id] = request
        self._set_timer()
        if prepared.target is None:
            request.task = asyncio.create_task(self._end_without_response(request, is_public=False))
            return
        if prepared.link is not None:
            request.task = asyncio.create_task(self._send_to_link(request, prepared.link))
            return
        connection = self.webhooks.egress.start(
            prepared.target, request.outgoing.data, MAX_READ, lambda outcome: self._on_outcome(request, outcome)
        )
        if connection is None:
            request.task = asyncio.create_task(self._send(request, prepared.target))
        elif not request.is_ended:
            request.connection = connection

    @property
    def in_flight(self) -> list[Request]:
        return list(self._requests.values())

    @property
    def awaited(self) -> list[Item]:
        """The deliveries whose requests may still get a response."""
        return [request.item for request in self._requests.values() if not request.is_delayed]

    def abort(self, item: Item | None = None) -> None:
        """End the request of a delivery, or all requests, without an outcome."""
        for request in self.in_flight:
            if item in (None, request.item):
                self._end(request, None)
                if request.task is not None:
                    request.task.cancel()
                if request.connection is not None:
                    request.connection.fail("aborted")

    def _on_outcome(self, request: Request, outcome: HttpResponse | Unreachable) -> None:
        if request.is_ended:
            return
        if isinstance(outcome, HttpResponse):
            self._end(request, self._attempt(request, outcome))
        elif request.connection is None or request.connection.was_closed_before_use:
            # The receiver had closed the idle connection: send on a new one.
            target = parse_target(request.prepared.url)
            request.task = asyncio.create_task(self._send(request, target))
        else:
            request.task = asyncio.create_task(self._end_without_response(request, is_public=outcome.is_public))

    async def _send(self, request: Request, target: Target) -> None:
        request.connection = None
        seconds = self.webhooks.pace.deadline_seconds - (time.monotonic() - request.began)
        try:
            response = await self.webhooks.egress.send(target, request.outgoing.data, seconds=seconds, cap=MAX_READ)
        except NoFreeSlot:
            self._end(request, None)
        except Unreachable as failure:
            await self._end_without_response(request, is_public=failure.is_public)
        except OSError:
            await self._end_without_response(request, is_public=False)
        except Exception:
            log.exception("delivery %s could not be sent", request.item.id)
            await self._end_without_response(request, is_public=False)
        else:
            self._end(request, self._attempt(request, response))

    async def _send_to_link(self, request: Request, link: TunnelLink | HostedLink) -> None:
        seconds = self.webhooks.pace.deadline_seconds - (time.monotonic() - request.began)
        head, _, body = request.outgoing.data.partition(b"\r\n\r\n")
        lines = [line.partition(": ") for line in head.decode("latin-1").split("\r\n")[1:]]
        headers = [(name, value) for name, _, value in lines]
        try:
            if isinstance(link, TunnelLink):
                answer = await self.webhooks.tunnels.forward(link.tunnel_id, link.path, headers, body, seconds)
            else:
                deliver = self.webhooks.deliver_to_space
                answer = await deliver(request.prepared.webhook_id, link, headers, body, seconds)
        except GatewayTimeout:
            # Not a private address: nothing to hide.
            await self._end_without_response(request, is_public=True)
        except (NotFound, ReceiverDown) as error:
            self._end(request, self._attempt(request, HttpResponse(error.status, [], error.message.encode())))
        except ReceiverStarting as error:
            # Not a failure of the receiver, unless it takes longer than any start: it may wait for room for days.
            request.item.starts += 1
            failure = HttpResponse(error.status, [], error.message.encode())
            self._end(
                request, self._attempt(request, failure) if request.item.starts > self.webhooks.pace.starts else None
            )
        except HubError:
            # Too many requests wait, or the database does not respond: nothing was sent, and it is sent again soon.
            self._end(request, None)
        except Exception:
            log.exception("delivery %s could not be forwarded", request.item.id)
            await self._end_without_response(request, is_public=False)
        else:
            retry_after = [("retry-after", answer.retry_after)] if answer.retry_after else []
            self._end(request, self._attempt(request, HttpResponse(answer.status, retry_after, answer.body)))

    async def _end_without_response(self, request: Request, *, is_public: bool) -> None:
        took = time.monotonic() - request.began
        if not is_public:
            silence = self.webhooks.pace.deadline_seconds if self.silence_seconds is None else self.silence_seconds
            request.is_delayed = True
            await asyncio.sleep(max(0.0, silence - took))
            # The exact duration would reveal the reason.
            took = silence
        self._end(request, Try(request.at, int(took * 1000), None))

    def _attempt(self, request: Request, response: HttpResponse) -> Try:
        took = time.monotonic() - request.began
        return Try(request.at, int(took * 1000), response, request.prepared.secret)

    def _end(self, request: Request, attempt: Try | None) -> None:
        if not request.is_ended:
            request.is_ended = True
            del self._requests[request.item.id]
            self.on_ended(request, attempt)

    def _set_timer(self) -> None:
        if self._timer is None and self._requests:
            first = next(iter(self._requests.values()))
            seconds = first.began + self.webhooks.pace.deadline_seconds - time.monotonic()
            # Not more often than every 50 ms, however many requests begin.
            self._timer = asyncio.get_running_loop().call_later(max(0.05, seconds), self._end_late)

    def _end_late(self) -> None:
        """End requests on reused connections at their deadline; those in tasks end by themselves."""
        self._timer = None
        late = time.monotonic() - self.webhooks.pace.deadline_seconds
        for request in list(itertools.takewhile(lambda each: each.began <= late, self._requests.values())):
            if request.connection is not None:
                request.connection.fail("no complete response in time")
        self._set_timer()
