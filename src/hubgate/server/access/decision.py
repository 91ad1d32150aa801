"""The answer to "may this caller do that", and the error it becomes at the edge."""

from dataclasses import dataclass
from enum import Enum

from hubgate.server.errors import Forbidden, HubError, NotFound, Unauthorized


class Outcome(Enum):
    ALLOW = "allow"
    HIDE = "hide"
    FORBID = "forbid"


@dataclass(frozen=True, slots=True)
class Decision:
    """`reason` is safe to show and says what would help. `scopes`, in registry order, are those that would help a
    token; a HIDE names none, for that would tell that there is something to see.

    `sign_in`: the caller showed no credential, so the answer is 401 whatever the outcome.
    """

    outcome: Outcome
    reason: str = ""
    scopes: tuple[str, ...] = ()
    code: str | None = None
    sign_in: bool = False

    @property
    def allowed(self) -> bool:
        return self.outcome is Outcome.ALLOW

    def enforce(self) -> None:
        """Return when allowed, otherwise raise the refusal."""
        if self.outcome is not Outcome.ALLOW:
            raise self.error()

    def error(self) -> HubError:
        """The refusal as an error. Lack of a scope is 403: on 401 existing clients drop a good token."""
        if self.sign_in:
            return Unauthorized(self.reason, code=self.code)
        if self.outcome is Outcome.HIDE:
            return NotFound(self.reason, code=self.code)
        return Forbidden(self.reason, code=self.code, scopes=self.scopes)


ALLOWED = Decision(Outcome.ALLOW)

# The code goes out on the anonymous 401 too: without it one client, on http, does not see "no such repo".
_REPO = "RepoNotFound"
HIDDEN_REPO = Decision(Outcome.HIDE, "Repository not found.", code=_REPO)
HIDDEN_REPO_SIGN_IN = Decision(
    Outcome.HIDE, "Repository not found. If it is private, sign in.", code=_REPO, sign_in=True
)
HIDDEN_COLLECTION = Decision(Outcome.HIDE, "Collection not found.")
HIDDEN_COLLECTION_SIGN_IN = Decision(Outcome.HIDE, "Collection not found. If it is private, sign in.", sign_in=True)


def forbid(reason: str, scopes: tuple[str, ...] = ()) -> Decision:
    return Decision(Outcome.FORBID, reason, scopes)


def ask_to_sign_in(purpose: str) -> Decision:
    return Decision(Outcome.FORBID, f"Sign in to {purpose}.", sign_in=True)


def gated(label: str, *, sign_in: bool) -> Decision:
    """The first sentence is fixed: a client's tests match it."""
    reason = f"Access to {label} is restricted and you are not in the authorized list. Ask for it on the repo's page."
    return Decision(Outcome.FORBID, reason, code="GatedRepo", sign_in=sign_in)
