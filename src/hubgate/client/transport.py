"""Performs effects in the calling thread, with httpx, which is imported at the first request.

httpx does not follow redirects, add credentials or decompress responses: the core decides all of that.
"""

import time
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from hubgate.client.errors import ConnectionLost, HubgateError, TimedOut, UnexpectedResponse, Unreachable
from hubgate.client.wire import Flow, Request, Response, Send, Sleep, Upload

if TYPE_CHECKING:
    import ssl

    import httpx

T = TypeVar("T")

# Error responses are read only up to the length that a message needs.
MAX_ERROR_BYTES = 64 * 1024
# Shorter than the idle timeout of servers: a request on a connection that was just closed may not be safe to retry.
_IDLE_SECONDS = 3.0
# What OpenSSL says, in different versions, about a server that answers without TLS.
_NOT_TLS = {"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST"}


class ResponseReader:
    """Reads a response with limits on size and time, for both drivers."""

    def __init__(self, request: Request, response: "httpx.Response", seconds: float) -> None:
        headers = {name.lower(): value for name, value in response.headers.items()}
        self.head = Response(response.status_code, headers, request.url)
        self.is_success = 200 <= response.status_code < 300
        self._max_bytes = request.max_bytes if self.is_success else MAX_ERROR_BYTES
        self._deadline = time.monotonic() + seconds
        self._body = bytearray()
        if self.is_success and headers.get("content-encoding", "identity").lower() != "identity":
            raise UnexpectedResponse("The hub answered with a compressed body that was not requested.")

    def add(self, piece: bytes) -> bool:
        """Add a piece of the body; False if the rest should not be read."""
        self._body += piece
        if len(self._body) > self._max_bytes:
            if self.is_success:
                raise UnexpectedResponse(f"The hub answered with more than {self._max_bytes:,} bytes. Reading stopped.")
            return False
        if time.monotonic() > self._deadline:
            raise TimedOut("The hub's response was not complete in time.")
        return True

    @property
    def response(self) -> Response:
        return Response(self.head.status, self.head.headers, self.head.url, bytes(self._body))


class Driver:
    """Runs flows in the calling thread. Several threads may share a driver."""

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._clients: dict[str, Any] = {}

    def run(self, flow: Flow[T]) -> T:
        try:
            effect = next(flow)
            while True:
                try:
                    result = self._perform(effect)
                except BaseException as error:  # noqa: BLE001, RUF100 (raised in the flow)
                    effect = flow.throw(error)
                else:
                    effect = flow.send(result)
        except StopIteration as end:
            value: T = end.value
            return value
        finally:
            flow.close()

    def close(self) -> None:
        while self._clients:
            self._clients.popitem()[1].close()

    def _perform(self, effect: Any) -> object:
        if isinstance(effect, Send):
            return self._send(effect.request)
        if isinstance(effect, Sleep):
            time.sleep(effect.seconds)
            return None
        done: object = effect.function()
        return done

    def _send(self, request: Request) -> Response:
        import httpx

        try:
            with self._client(request.url).stream(**request_arguments(request, self._timeout)) as raw:
                reader = ResponseReader(request, raw, request.read_timeout or self._timeout)
                sink = request.sink
                if sink is not None and reader.is_success and sink.begin(reader.head):
                    for piece in raw.iter_raw():
                        sink.write(piece)
                else:
                    for piece in raw.iter_raw():
                        if not reader.add(piece):
                            break
                return reader.response
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
            raise translate_error(error, request.url) from error

    def _client(self, url: str) -> "httpx.Client":
        import httpx

        scheme = urlsplit(url).scheme
        if scheme not in self._clients:
            client = open_client(httpx.Client, scheme)
            self._clients[scheme] = client
            # A Hub that was not closed must not cause ResourceWarnings about open sockets.
            weakref.finalize(self, client.close)
        found: httpx.Client = self._clients[scheme]
        return found


def open_client(create: Callable[..., T], scheme: str) -> T:
    import httpx

    try:
        return create(**_options(scheme))
    except (ImportError, ValueError, httpx.InvalidURL) as error:
        # Proxy variables such as HTTP_PROXY are the only settings that the client does not control.
        raise Unreachable(f"The proxy in the environment cannot be used: {error}", worth_retrying=False) from error


def _options(scheme: str) -> dict[str, Any]:
    import httpx

    limits = httpx.Limits(max_connections=100, max_keepalive_connections=20, keepalive_expiry=_IDLE_SECONDS)
    # Loading certificates takes longer than most requests, and plain http does not need them.
    verify = _certificates() if scheme == "https" else False
    return {"verify": verify, "follow_redirects": False, "limits": limits}


def _certificates() -> "ssl.SSLContext":
    """The system's certificate authorities, which may include a company's own, or certifi's if the system has none."""
    import ssl

    context = ssl.create_default_context()
    if not context.cert_store_stats()["x509_ca"]:
        import certifi

        context.load_verify_locations(certifi.where())
    return context


def request_arguments(request: Request, timeout: float) -> dict[str, Any]:
    import httpx

    headers, content = dict(request.headers), request.body
    if isinstance(content, Upload):
        headers["Content-Length"] = str(content.size)
        content = content.pieces()  # type: ignore[assignment]
    return {
        "method": request.method,
        "url": request.url,
        "headers": headers,
        "content": content,
        "timeout": httpx.Timeout(timeout, read=request.read_timeout or timeout),
    }


def translate_error(error: Exception, url: str) -> HubgateError:
    """Convert an httpx error to one of `errors`. Messages contain only the host: a signed URL is a credential."""
    import ssl

    import httpx

    host = urlsplit(url).netloc
    if isinstance(error, httpx.ConnectTimeout):
        return Unreachable(f"{host} does not answer.")
    if isinstance(error, httpx.ConnectError | httpx.ProxyError | httpx.UnsupportedProtocol | httpx.InvalidURL):
        causes = _causes(error)
        if any(isinstance(cause, ssl.SSLError) and cause.reason in _NOT_TLS for cause in causes):
            return Unreachable(f"{host} does not use https. Try http://{host}", worth_retrying=False)
        if any(isinstance(cause, ssl.SSLError) for cause in causes):
            return Unreachable(f"No secure connection to {host}: {_reason(causes)}", worth_retrying=False)
        return Unreachable(f"{host} cannot be reached: {_reason(causes)}")
    if isinstance(error, httpx.TimeoutException):
        return TimedOut(f"{host} did not answer in time.")
    text = str(error)
    ended_early = "disconnected" in text or "peer closed" in text
    if isinstance(error, httpx.NetworkError) or ended_early:
        return ConnectionLost(f"The connection to {host} was lost before the response was complete.")
    return UnexpectedResponse(f"{host} did not answer with valid HTTP.")


def _causes(error: BaseException | None) -> list[BaseException]:
    found: list[BaseException] = []
    while error is not None and len(found) < 10:
        found.append(error)
        error = error.__cause__ or error.__context__
    return found


def _reason(causes: list[BaseException]) -> str:
    import ssl

    for cause in causes:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return cause.verify_message
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror
    return str(causes[0]) or "no connection"
