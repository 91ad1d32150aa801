"""What can go wrong, by cause. Every message is one line that may be shown to people.

HubgateError
├── Unreachable              no connection came about: nothing was sent
├── ConnectionLost           it broke in the middle: a change may or may not have been made
│   └── TimedOut             no answer in time
├── UnexpectedAnswer         not what a hub answers: garbage, another content type, too much, too little
│   └── WrongHash            a download that is not what the hub announced; nothing was kept
├── UnsafeRedirect           the hub sent us elsewhere with a request that goes nowhere else
├── Refused                  the hub understood and said no (status, code, request_id)
│   ├── NotSignedIn 401      no token, or one that is no longer good
│   ├── Forbidden 403        the role or the token does not reach this far
│   │   └── GatedRepo        the repo's owner has not let this user in (401 for anonymous callers)
│   ├── NotFound 404         absent, or hidden from this user
│   │   └── RepoNotFound, RevisionNotFound, EntryNotFound
│   ├── Conflict 409         the name is taken, or the state does not allow it
│   ├── Stale 412            somebody else was faster
│   ├── BadRequest 400, 413, 415, 422   the hub cannot take this; the message says what
│   ├── RateLimited 429      too often; `retry_after` says when
│   └── HubFailure 5xx       the hub has trouble of its own
├── SignInFailed             an OAuth answer that ends the attempt (error, description)
│   └── SignInDenied, SignInExpired
├── FileChanged              a local file changed while it was sent
└── StoreUnusable            the file of stored sign-ins cannot be read, written or locked
"""

from collections.abc import Mapping


class HubgateError(Exception):
    """Whatever the client raises on purpose, but for ValueError on arguments that cannot be meant."""


class Unreachable(HubgateError):
    """`worth_retrying` is False where another try would end the same way, as with a certificate that is not good."""

    def __init__(self, message: str, *, worth_retrying: bool = True) -> None:
        super().__init__(message)
        self.worth_retrying = worth_retrying


class ConnectionLost(HubgateError):
    pass


class TimedOut(ConnectionLost):
    pass


class UnexpectedAnswer(HubgateError):
    pass


class WrongHash(UnexpectedAnswer):
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
    412: Stale,
    429: RateLimited,
}


def refusal_for(status: int, code: str) -> type[Refused]:
    """The code is the finer of the two: to an anonymous caller a hidden repo is 401 with RepoNotFound."""
    if status in (401, 403, 404) and code in _BY_CODE:
        return _BY_CODE[code]
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    return HubFailure if status >= 500 else BadRequest
