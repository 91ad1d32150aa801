"""The request that handlers receive: Starlette's request with the results of the edge's checks."""

from typing import Any, TypeVar

import msgspec
from starlette.requests import Request

from hubgate.server.errors import BadRequest, Unprocessable, UnsupportedMedia
from hubgate.server.http.forms import Fields, parse_fields
from hubgate.server.http.intake import BoundedBody
from hubgate.server.http.multipart import MULTIPART_TYPE, MultipartForm
from hubgate.server.jobs.caller import JobCaller

T = TypeVar("T")

FORM_TYPE = "application/x-www-form-urlencoded"


class HubRequest(Request):
    """A request. The edge sets `request_id`, `client_ip` and, for a page's POST, the checked `form_fields`."""

    request_id: str
    client_ip: str
    secret_address: bool = False
    # The token in the body (RFC 6750, section 2.2), set by the guard; empty if there is none.
    body_token: str = ""
    # Whether the error response is stored, for the owner of the app that sent the request.
    is_explained: bool = False
    form_fields: Fields
    # The files of a form, which follow its fields.
    form_files: MultipartForm
    # An `access.caller.Caller`, set by the guard.
    caller: Any = None
    # The caller that jobs in threads and subprocesses are charged to.
    job_caller: JobCaller
    bounded_body: BoundedBody | None = None

    def read_body_through(self, body: BoundedBody) -> None:
        """Read the body through `body` from here on; `body` also detects a client disconnect."""
        self._receive = self.bounded_body = body
        self.job_caller.detect_disconnect_with(body.disconnected)

    @property
    def has_read_body(self) -> bool:
        """Whether the whole body was read before, so that reading it again does not wait."""
        return hasattr(self, "_body")

    def param(self, name: str) -> str:
        """A path parameter, percent-decoded."""
        value: str = self.path_params[name]
        return value

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
