"""The exceptions of the client, by cause. Every message is one line that may be shown to users.

HubgateError
├── Unreachable              the connection failed; nothing was sent
├── ConnectionLost           the connection broke during a request; a change may or may not have been made
│   └── TimedOut             no response in time
├── UnexpectedResponse       not a hub's response: malformed, wrong content type, too long or incomplete
│   └── WrongHash            a download does not match the expected hash and was deleted
├── UnsafeRedirect           the hub redirected a request that must not be redirected
├── Refused                  the hub rejected the request (status, code, request_id)
│   ├── NotSignedIn 401      the token is missing, expired or revoked
│   ├── Forbidden 403        the role or the token does not permit this
│   │   └── GatedRepo        the repo's owner has not granted access (401 for anonymous callers)
│   ├── NotFound 404         does not exist, or is hidden from this user
│   │   └── RepoNotFound, RevisionNotFound, EntryNotFound
│   ├── Conflict 409         the name is taken, or the current state does not allow the request
│   ├── Gone 410             no longer stored; `oldest` is the number of the oldest event that is
│   ├── Stale 412            the target was changed concurrently
│   ├── BadRequest 400, 413, 415, 422   the request is invalid; the message says why
│   ├── RateLimited 429      too many requests; `retry_after` is the time to wait
│   └── HubFailure 5xx       an error in the hub
├── SignInFailed             an OAuth error that ends the sign-in (error, description)
│   └── SignInDenied, SignInExpired
├── FileChanged              a local file changed while it was being uploaded
└── StoreUnusable            the file of stored sign-ins cannot be read, written or locked
"""

from collections.abc import Mapping


class HubgateError(Exception):
    """Base class of the client's exceptions. Invalid arguments raise ValueError instead."""


class Unreachable(HubgateError):
    """The connection failed. `worth_retrying` is False if a retry would fail too, as with an invalid certificate."""

    def __init__(self, message: str, *, worth_retrying: bool = True) -> None:
        super().__init__(message)
        self.worth_retrying = worth_retrying


class ConnectionLost(HubgateError):
    pass


class TimedOut(ConnectionLost):
    pass


class UnexpectedResponse(HubgateError):
    pass


class WrongHash(UnexpectedResponse):
    pass


class UnsafeRedirect(HubgateError):
    pass


class Refused(HubgateError):
    def __init__(
        self, message: str, *, status: int = 0, code: str = "", request_id: str = "", retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.code = code
        self.request_id = request_id
        self.retry_after = retry_after


class NotSignedIn(Refused):
    pass


class Forbidden(Refused):
    pass


class GatedRepo(Forbidden):
    pass


class NotFound(Refused):
    pass


class RepoNotFound(NotFound):
    pass


class RevisionNotFound(NotFound):
    pass


class EntryNotFound(NotFound):
    pass


class Conflict(Refused):
    pass


class Gone(Refused):
    oldest: int | None = None


class Stale(Refused):
    pass


class BadRequest(Refused):
    pass


class RateLimited(Refused):
    pass


class HubFailure(Refused):
    pass


class SignInFailed(HubgateError):
    def __init__(self, message: str, *, error: str = "", description: str = "") -> None:
        super().__init__(message)
        self.error = error
        self.description = description


class SignInDenied(SignInFailed):
    pass


class SignInExpired(SignInFailed):
    pass


class FileChanged(HubgateError):
    pass


class StoreUnusable(HubgateError):
    pass


_BY_CODE: Mapping[str, type[Refused]] = {
    "RepoNotFound": RepoNotFound,
    "RevisionNotFound": RevisionNotFound,
    "EntryNotFound": EntryNotFound,
    "GatedRepo": GatedRepo,
}
_BY_STATUS: Mapping[int, type[Refused]] = {
    401: NotSignedIn,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    412: Stale,
    429: RateLimited,
}


def refusal_for(status: int, code: str) -> type[Refused]:
    """The exception class for a status and an error code.

    The code takes precedence: an anonymous caller gets 401 with the code RepoNotFound for a hidden repo.
    """
    if status in (401, 403, 404) and code in _BY_CODE:
        return _BY_CODE[code]
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    return HubFailure if status >= 500 else BadRequest
