"""The request that handlers receive: what the server passed, and the results of the edge's checks."""

from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any, TypeVar

import msgspec

from hubgate.server.errors import BadRequest, Unprocessable, UnsupportedMedia
from hubgate.server.http.asgi import ClientDisconnect, Message, Receive, RequestHeaders, Scope
from hubgate.server.http.forms import Fields, parse_fields
from hubgate.server.http.intake import BoundedBody
from hubgate.server.http.multipart import MULTIPART_TYPE, MultipartForm
from hubgate.server.jobs.caller import JobCaller

T = TypeVar("T")

FORM_TYPE = "application/x-www-form-urlencoded"


class HubRequest:
    """A request. The edge sets `path_params` and, for a page's POST, the checked `form_fields`."""

    __slots__ = (
        "_body",
        "_is_consumed",
        "_state",
        "body_token",
        "bounded_body",
        "caller",
        "client_ip",
        "form_fields",
        "form_files",
        "headers",
        "is_explained",
        "job_caller",
        "method",
        "path_params",
        "receive",
        "request_id",
        "scope",
        "secret_address",
    )

    form_fields: Fields
    # The files of a form, which follow its fields.
    form_files: MultipartForm

    def __init__(
        self,
        scope: Scope,
        receive: Receive,
        headers: RequestHeaders,
        request_id: str,
        client_ip: str,
        job_caller: JobCaller,
    ) -> None:
        self.scope, self.receive, self.headers = scope, receive, headers
        self.method: str = scope["method"]
        self.request_id, self.client_ip = request_id, client_ip
        # The caller that jobs in threads and subprocesses are charged to.
        self.job_caller = job_caller
        # An `access.caller.Caller`, set by the guard.
        self.caller: Any = None
        self.path_params: dict[str, str] = {}
        self.secret_address = False
        # The token in the body (RFC 6750, section 2.2), set by the guard; empty if there is none.
        self.body_token = ""
        # Whether the error response is stored, for the owner of the app that sent the request.
        self.is_explained = False
        self.bounded_body: BoundedBody | None = None
        self._body: bytes | None = None
        self._is_consumed = False
        self._state: SimpleNamespace | None = None

    def read_body_through(self, body: BoundedBody) -> None:
        """Read the body through `body` from here on; `body` also detects a client disconnect."""
        self.receive = self.bounded_body = body
        self.job_caller.detect_disconnect_with(body.disconnected)

    async def stream(self) -> AsyncIterator[bytes]:
        """The body in the parts in which it is received. Only a body that `body` has read can be read again."""
        if self._body is not None:
            yield self._body
        elif self._is_consumed:
            raise RuntimeError("The body has been read.")
        while not self._is_consumed:
            message = await self._next_message()
            if part := message.get("body", b""):
                yield part

    async def body(self) -> bytes:
        """The whole body."""
        if self._body is None:
            if self._is_consumed:
                raise RuntimeError("The body has been read.")
            parts: list[bytes] = []
            while not self._is_consumed:
                parts.append((await self._next_message()).get("body", b""))
            self._body = parts[0] if len(parts) == 1 else b"".join(parts)
        return self._body

    async def _next_message(self) -> Message:
        message = await self.receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        self._is_consumed = not message.get("more_body", False)
        return message

    @property
    def has_read_body(self) -> bool:
        """Whether the whole body was read before, so that reading it again does not wait."""
        return self._body is not None

    @property
    def path(self) -> str:
        """The path, percent-decoded. Routes are matched on the path as it was sent, in `scope["raw_path"]`."""
        path: str = self.scope["path"]
        return path

    @property
    def state(self) -> SimpleNamespace:
        """Values that one step of a request leaves for a later one."""
        if self._state is None:
            self._state = SimpleNamespace()
        return self._state

    def param(self, name: str) -> str:
        """A path parameter, percent-decoded."""
        return self.path_params[name]

    @property
    def presents_token(self) -> bool:
        """Whether the request has a Bearer token; other ways of authentication do not count."""
        scheme = self.headers.get("authorization", "").partition(" ")[0]
        return scheme.lower() == "bearer" or self.body_token != ""

    @property
    def content_type(self) -> str:
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    def query(self) -> dict[str, str]:
        """The query parameters; a repeated parameter is rejected."""
        return self.query_fields().to_dict()

    def query_fields(self) -> Fields:
        return parse_fields(self.scope["query_string"])

    async def read_form(self) -> Fields:
        # An empty body without a content type is an empty form.
        if self.content_type != FORM_TYPE and (self.content_type or await self.body()):
            raise UnsupportedMedia(f"Send the body as {FORM_TYPE}.")
        return parse_fields(await self.body())

    async def read_form_with_files(self) -> Fields:
        """The fields of a form with files. The files are read from `form_files`."""
        if self.content_type != MULTIPART_TYPE:
            raise UnsupportedMedia(f"Send the body as {MULTIPART_TYPE}.")
        self.form_files = MultipartForm(self.headers["content-type"], self.stream())
        return await self.form_files.read_fields()

    async def read_json(self, shape: type[T]) -> T:
        """The JSON body decoded as `shape`. Invalid JSON is 400; valid JSON of another shape is 422."""
        if self.content_type not in ("application/json", ""):
            raise UnsupportedMedia("Send the body as application/json.")
        body = await self.body()
        try:
            decoded = msgspec.json.decode(body, type=shape)
        except msgspec.ValidationError as error:
            raise Unprocessable(str(error).replace("Invalid enum value", "Unknown value")[:300]) from error
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise BadRequest(f"The body is not JSON: {error}") from error
        except RecursionError:
            raise BadRequest("The body is nested too deeply.") from None
        if _contains_nul(body):
            raise Unprocessable("A text contains a NUL character.")
        return decoded


def _contains_nul(body: bytes) -> bool:
    """Whether valid JSON contains a NUL character, which PostgreSQL cannot store.

    Searches the raw text: walking the values of a few megabytes would block the event loop.
    """
    escaped = b"\\u0000"
    # An escaped backslash followed by `u0000` is not a NUL.
    return escaped in body and escaped in body.replace(b"\\\\", b"")
