"""All errors that the hub returns. Each has a status, a machine-readable code and a message that is safe to show.

HubError
├── BadRequest 400           unreadable or contradictory input
│   └── PayloadTooLarge 413, HeadersTooLarge 431, UnsupportedMedia 415
├── Unauthorized 401         the credential is missing, expired or revoked
│   └── TokenForAnotherServer
├── Forbidden 403            authenticated, but not allowed; names the scopes to request
├── NotFound 404             does not exist, or is hidden from this caller
├── MethodNotAllowed 405
├── RequestTimeout 408       the body was not received in time
├── Conflict 409
├── Gone 410                 no longer stored
├── PreconditionFailed 412
├── Unprocessable 422        well-formed, but a value is invalid; names the field
│   └── FieldErrors          one message per form field
├── TooManyRequests 429      carries Retry-After
├── NotImplementedHere 501   needs a service the operator has not configured
├── BadGateway 502           the operator's service is unreachable, or its response is invalid
├── Unavailable 503          carries Retry-After; clients may retry
│   └── StorageUnavailable   the database is unreachable, busy or full
│       └── OutcomeUnknown   the change may be committed: a blind retry is unsafe
└── GatewayTimeout 504       the operator's service does not respond

StartupError is separate: the command line prints it as one line and exits with status 1.

The cause of an error is logged and never sent to the caller. The surface that raised the error decides its wire format
(`http/render.py`).
"""

from collections.abc import Iterable, Mapping


class HubError(Exception):
    status = 500
    code: str | None = None

    def __init__(self, message: str, *, code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        if code is not None:
            self.code = code


class BadRequest(HubError):
    status = 400


class PayloadTooLarge(BadRequest):
    status = 413


class UnsupportedMedia(BadRequest):
    status = 415


class HeadersTooLarge(BadRequest):
    status = 431


class Unauthorized(HubError):
    """`challenge` replaces the surface's WWW-Authenticate header; an empty string omits the header."""

    status = 401

    def __init__(self, message: str, *, code: str | None = None, challenge: str | None = None) -> None:
        super().__init__(message, code=code)
        self.challenge = challenge


class TokenForAnotherServer(Unauthorized):
    """The token is valid, but was issued for `servers` and is rejected here (RFC 8707; attack O64)."""

    def __init__(self, servers: str) -> None:
        super().__init__(f"This token is for {servers[:200]}, not for this hub. Request one for this hub.")


class Forbidden(HubError):
    status = 403

    def __init__(self, message: str, *, code: str | None = None, scopes: Iterable[str] = ()) -> None:
        super().__init__(message, code=code)
        self.scopes = tuple(scopes)


class NotFound(HubError):
    status = 404


class MethodNotAllowed(HubError):
    status = 405

    def __init__(self, allowed: Iterable[str]) -> None:
        self.allowed = tuple(sorted(allowed))
        super().__init__(f"This address accepts {', '.join(self.allowed)}.")


class RequestTimeout(HubError):
    status = 408


class Conflict(HubError):
    status = 409


class Gone(HubError):
    status = 410


class PreconditionFailed(HubError):
    status = 412


class Unprocessable(HubError):
    status = 422


class FieldErrors(Unprocessable):
    def __init__(self, fields: Mapping[str, str]) -> None:
        super().__init__(" ".join(fields.values()))
        self.fields = dict(fields)


class TooManyRequests(HubError):
    status = 429

    def __init__(self, message: str, *, retry_after: int, code: str | None = None) -> None:
        super().__init__(message, code=code)
        self.retry_after = retry_after


class NotImplementedHere(HubError):
    status = 501


class BadGateway(HubError):
    status = 502


class Unavailable(HubError):
    status = 503

    def __init__(self, message: str, *, retry_after: int = 2) -> None:
        super().__init__(message)
        self.retry_after: int | None = retry_after


class StorageUnavailable(Unavailable):
    def __init__(self, message: str = "The database is not answering. Try again shortly.") -> None:
        super().__init__(message)


class OutcomeUnknown(StorageUnavailable):
    """The commit was sent and its response lost: the change may or may not be stored, so a blind retry is unsafe."""

    code = "OutcomeUnknown"

    def __init__(self) -> None:
        super().__init__("The database connection was lost. Check whether the change was saved before you try again.")
        # Clients repeat a request automatically if the response has this header.
        self.retry_after = None


class GatewayTimeout(HubError):
    status = 504


class StartupError(Exception):
    """The hub cannot start. The message is one line and says how to fix the problem."""
