"""Every refusal the hub can give, as a value: status, machine code, a message safe to show.

HubError
├── BadRequest 400           unreadable or contradictory input
│   └── PayloadTooLarge 413, HeadersTooLarge 431, UnsupportedMedia 415
├── Unauthorized 401         no credential, or one that is no longer good
│   └── TokenForAnotherServer
├── Forbidden 403            known, but not allowed; names the scopes that would help
├── NotFound 404             absent, or hidden from this caller
├── MethodNotAllowed 405
├── RequestTimeout 408       the body did not arrive in time
├── Conflict 409
├── PreconditionFailed 412
├── Unprocessable 422        well-formed but not allowed; names the field
│   └── FieldErrors          a form with sentences for its fields
├── TooManyRequests 429      carries Retry-After
├── NotImplementedHere 501   needs a service the operator has not configured
└── Unavailable 503          carries Retry-After; clients may try again
    └── StorageUnavailable   the database is away, busy or full
        └── OutcomeUnknown   the connection broke while committing

StartupError stands apart: the command line prints it as one line and exits 1.

The cause of an error goes to the log, never to the caller. How an error looks on the wire is decided by the
surface it happens on (`http/render.py`).
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
    """`challenge` replaces what the surface would say in WWW-Authenticate; empty, nothing is said."""

    status = 401

    def __init__(self, message: str, *, code: str | None = None, challenge: str | None = None) -> None:
        super().__init__(message, code=code)
        self.challenge = challenge


class TokenForAnotherServer(Unauthorized):
    """A good token that was requested for `servers`, and so is refused here (RFC 8707; attack O64)."""

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
        super().__init__(f"This address takes {', '.join(self.allowed)}.")


class RequestTimeout(HubError):
    status = 408


class Conflict(HubError):
    status = 409


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


class Unavailable(HubError):
    status = 503

    def __init__(self, message: str, *, retry_after: int = 2) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class StorageUnavailable(Unavailable):
    def __init__(self, message: str = "The database is not answering. Try again shortly.") -> None:
        super().__init__(message)


class OutcomeUnknown(StorageUnavailable):
    """The commit was sent and its answer lost: the change may or may not be there, so no one may repeat it blindly."""

    code = "OutcomeUnknown"

    def __init__(self) -> None:
        super().__init__("The database went away while saving. Check whether the change is there before trying again.")


class StartupError(Exception):
    """A reason not to start, said in one line that names the cure."""
