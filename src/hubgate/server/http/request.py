"""The request as handlers see it: Starlette's, with what the outermost layer found out about it."""

from typing import Any, TypeVar

import msgspec
from starlette.requests import Request

from hubgate.server.errors import BadRequest, Unprocessable, UnsupportedMedia
from hubgate.server.http.forms import Fields, parse_fields
from hubgate.server.http.intake import BoundedBody
from hubgate.server.jobs.caller import Caller

T = TypeVar("T")

FORM_TYPE = "application/x-www-form-urlencoded"


class HubRequest(Request):
    """Before any handler runs `request_id` and `client_ip` are set, and for a page's POST the checked `form_fields`."""

    request_id: str
    client_ip: str
    secret_address: bool = False
    # Its refusal is kept for the owner of the app that sent it.
    is_explained: bool = False
    form_fields: Fields
    # Who sent it: an `access.caller.Caller`, once the guard has found one.
    caller: Any = None
    # Whom its work in threads and programs is charged to.
    jobs_for: Caller
    bounded: BoundedBody | None = None

    def bound_body(self, body: BoundedBody) -> None:
        """From here on the body is read through `body`, which also knows when the client leaves."""
        self._receive = self.bounded = body
        self.jobs_for.leaves_when(body.gone)

    @property
    def is_whole(self) -> bool:
        """Whether the body is here, so that reading it again waits for nobody."""
        return hasattr(self, "_body")

    def param(self, name: str) -> str:
        """A part of the path, percent-decoded."""
        value: str = self.path_params[name]
        return value

    @property
    def content_type(self) -> str:
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    def query(self) -> dict[str, str]:
        """The query's parameters; one that is sent twice is refused rather than guessed at."""
        return self.query_fields().single()

    def query_fields(self) -> Fields:
        return parse_fields(self.scope["query_string"])

    async def read_form(self) -> Fields:
        # Nothing at all is an empty form.
        if self.content_type != FORM_TYPE and (self.content_type or await self.body()):
            raise UnsupportedMedia(f"Send this as {FORM_TYPE}.")
        return parse_fields(await self.body())

    async def read_json(self, shape: type[T]) -> T:
        """The body as `shape`. Unparseable JSON is 400; well-formed but not as documented is 422."""
        if self.content_type not in ("application/json", ""):
            raise UnsupportedMedia("Send this as application/json.")
        body = await self.body()
        try:
            decoded = msgspec.json.decode(body, type=shape)
        except msgspec.ValidationError as error:
            raise Unprocessable(str(error).replace("Invalid enum value", "Unknown value")[:300]) from error
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise BadRequest(f"The body is not JSON: {error}") from error
        except RecursionError:
            raise BadRequest("The body is nested too deeply.") from None
        if _holds_nul(body):
            raise Unprocessable("A text holds a NUL character.")
        return decoded


def _holds_nul(body: bytes) -> bool:
    """Of valid JSON. PostgreSQL cannot store one, and no name, title or comment needs one.

    Found in the text itself: a walk through the values of a few megabytes would block the event loop.
    """
    escaped = b"\\u0000"
    # An escaped backslash in front of `u0000` does not escape it.
    return escaped in body and escaped in body.replace(b"\\\\", b"")
