"""Runs calls to the hub, with token, redirects, retries and errors. Every operation uses this module.

Only `_headers` adds the token, and only if the request is sent to the hub's own origin. Requests to any other origin,
after a redirect or to a URL from a response, are sent without the token.
"""

import json
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol
from urllib.parse import urlencode, urljoin

from hubgate import __version__
from hubgate.client import responses, retry_policy
from hubgate.client.addresses import checked_url, origin_of
from hubgate.client.errors import ConnectionLost, HubgateError, UnexpectedResponse, UnsafeRedirect
from hubgate.client.store import Store
from hubgate.client.wire import MAX_JSON_BYTES, Flow, Request, Response, Sink, Upload, send, sleep
from hubgate.depth import HEADER as DEPTH
from hubgate.depth import delivery_depth

USER_AGENT = f"hubgate/{__version__}"
MAX_REDIRECTS = 5
MAX_PAGES = 10_000
RETRIES = 4

_REDIRECTS = frozenset({301, 302, 303, 307, 308})


class Credentials(Protocol):
    def current(self, session: "Session") -> Flow[str | None]:
        """The token to send, refreshed if it is about to expire."""

    def renew(self, session: "Session", rejected: str) -> Flow[str | None]:
        """A new token after the hub rejected this one, or None."""


@dataclass(frozen=True)
class Call:
    """A call to the hub. `path` begins with a slash and is on the hub; `url` is a URL from a response of the hub."""

    method: str
    path: str = ""
    url: str = ""
    query: Mapping[str, str | int | None] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes | Upload = b""
    sink: Sink | None = None
    max_bytes: int = MAX_JSON_BYTES
    read_timeout: float | None = None
    # Whether to send the token.
    send_token: bool = True
    # Whether a POST is safe to retry: it only reads, or repeating it does no harm.
    repeatable: bool = False
    # Whether failures are retried. False for a stream, which its caller resumes where it ended.
    retried: bool = True
    # Whether to follow a redirect to another origin, without the token.
    follow_to_other_origin: bool = False
    # Whether to return a redirect to another origin as the response.
    return_redirect: bool = False


def json_call(method: str, path: str, content: object = None, **more: Any) -> Call:
    if content is None:
        return Call(method, path, **more)
    headers = {"Content-Type": "application/json", **more.pop("headers", {})}
    return Call(method, path, headers=headers, body=json.dumps(content, ensure_ascii=False).encode(), **more)


@dataclass
class Session:
    endpoint: str
    credentials: Credentials
    store: Store = field(default_factory=Store)
    retries: int = RETRIES
    clock: Callable[[], float] = time.time
    jitter: Callable[[], float] = random.random

    def call(self, call: Call) -> Flow[Response]:
        """The response, if it is a success; otherwise raises the matching exception."""
        response = yield from self.response(call)
        if not 200 <= response.status < 300:
            raise responses.refusal(response, self.clock())
        return response

    def json(self, call: Call) -> Flow[Any]:
        response = yield from self.call(replace(call, headers={"Accept": "application/json", **call.headers}))
        return responses.json_of(response)

    def response(self, call: Call) -> Flow[Response]:
        """The final response, with any status."""
        token = (yield from self.credentials.current(self)) if call.send_token else None
        response = yield from self._follow(call, token)
        if response.status == 401 and token is not None:
            new = yield from self.credentials.renew(self, token)
            if new is not None:
                response = yield from self._follow(call, new)
        return response

    def pages(self, call: Call, limit: int | None) -> Flow[list[Any]]:
        """The items of all pages of a list, at most `limit`."""
        found: list[Any] = []
        for _ in range(MAX_PAGES):
            response = yield from self.call(call)
            items = responses.json_of(response)
            if not isinstance(items, list):
                raise UnexpectedResponse("The hub's response is not a list.")
            found += items
            next_url = responses.next_page(response)
            if not items or next_url is None or (limit is not None and len(found) >= limit):
                break
            if origin_of(checked_url(next_url)) != self.endpoint:
                raise UnexpectedResponse("The next page of the list is on another host. It was not fetched.")
            call = replace(call, url=next_url, path="", query={})
        return found if limit is None else found[:limit]

    def _follow(self, call: Call, token: str | None) -> Flow[Response]:
        method, url = call.method, call.url or self.endpoint + call.path + _query(call.query)
        for _ in range(MAX_REDIRECTS):
            request = Request(
                method,
                url,
                self._headers(call, url, token),
                call.body,
                call.sink,
                call.max_bytes,
                call.read_timeout,
            )
            response = yield from self._send_with_retries(request, call)
            if response.status not in _REDIRECTS or "location" not in response.headers:
                return response
            location = self._redirect_target(call, response, url)
            if location is None:
                return response
            url = location
            if origin_of(url) != self.endpoint:
                # For later redirects too: a host that redirects back must not choose a URL that gets our token.
                token = None
        raise UnexpectedResponse("The hub redirected too often.")

    def _send_with_retries(self, request: Request, call: Call) -> Flow[Response]:
        repeatable = call.repeatable or request.method in retry_policy.IDEMPOTENT
        retries = self.retries if call.retried else 0
        tries, may_have_succeeded = 0, False
        while True:
            tries += 1
            try:
                response = yield from send(request)
            except HubgateError as error:
                if tries > retries or not retry_policy.may_repeat_after_error(error, repeatable=repeatable):
                    raise
                may_have_succeeded, requested = may_have_succeeded or isinstance(error, ConnectionLost), None
            else:
                if may_have_succeeded and request.method == "DELETE" and response.status == 404:
                    # An earlier try succeeded, and only its response was lost.
                    return Response(200, {"content-type": "application/json"}, response.url, b"{}")
                if tries > retries or not retry_policy.may_repeat_after_response(response, repeatable=repeatable):
                    return response
                may_have_succeeded = may_have_succeeded or response.status != 429
                requested = retry_policy.retry_after(response.headers.get("retry-after"), self.clock())
            pause = retry_policy.retry_delay(tries, requested, self.jitter)
            if pause is None:
                return response
            yield from sleep(pause)

    def _headers(self, call: Call, url: str, token: str | None) -> dict[str, str]:
        # Downloads are hashed as sent, and responses are never decompressed.
        headers = {"User-Agent": USER_AGENT, "Accept-Encoding": "identity", **call.headers}
        if origin_of(url) == self.endpoint:
            if token is not None:
                headers["Authorization"] = f"Bearer {token}"
            depth = delivery_depth.get()
            if depth is not None:
                headers[DEPTH] = str(depth)
        elif call.path:
            # Redirected to another origin: credentials in the call's headers, such as Basic, are dropped too.
            headers.pop("Authorization", None)
        return headers

    def _redirect_target(self, call: Call, response: Response, url: str) -> str | None:
        try:
            location = checked_url(urljoin(url, response.headers["location"]))
        except ValueError:
            raise UnexpectedResponse("The hub redirected to an invalid address.") from None
        origin, target = origin_of(url), origin_of(location)
        if call.method not in ("GET", "HEAD") and response.status not in (307, 308):
            raise UnsafeRedirect(f"The redirect would turn a {call.method} into a GET. Nothing was sent to {target}.")
        if target != origin and call.return_redirect:
            return None
        if target != origin and not call.follow_to_other_origin:
            raise UnsafeRedirect(f"The hub redirected to another host, {target}. Nothing was sent there.")
        if origin.startswith("https:") and not target.startswith("https:"):
            raise UnsafeRedirect(f"The hub redirected to an unencrypted address, {target}. Nothing was sent there.")
        return location


def _query(query: Mapping[str, str | int | None]) -> str:
    given = {name: value for name, value in query.items() if value is not None}
    return f"?{urlencode(given)}" if given else ""
