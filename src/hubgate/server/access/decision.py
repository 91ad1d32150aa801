"""The result of a permission check, and the error that the edge raises for it."""

from enum import Enum

from msgspec import Struct

from hubgate.server.errors import Forbidden, HubError, NotFound, Unauthorized


class DecisionOutcome(Enum):
    ALLOW = "allow"
    HIDE = "hide"
    FORBID = "forbid"


class Decision(Struct, frozen=True):
    """The result of a permission check.

    reason      safe to show; says what the caller can do about it
    scopes      scopes that would allow it, in registry order; empty for HIDE, which must not reveal the resource
    request     the scopes to request for it: of alternatives, only the weakest
    sign_in     the caller presented no credential, so the response is 401 for HIDE and FORBID alike
    """

    outcome: DecisionOutcome
    reason: str = ""
    scopes: tuple[str, ...] = ()
    request: tuple[str, ...] = ()
    code: str | None = None
    sign_in: bool = False

    @property
    def allowed(self) -> bool:
        return self.outcome is DecisionOutcome.ALLOW

    def enforce(self) -> None:
        """Return if allowed, otherwise raise the error."""
        if self.outcome is not DecisionOutcome.ALLOW:
            raise self.error()

    def error(self) -> HubError:
        """The decision as an error. A missing scope is 403: on 401 existing clients drop a valid token."""
        if self.sign_in:
            return Unauthorized(self.reason, code=self.code)
        if self.outcome is DecisionOutcome.HIDE:
            return NotFound(self.reason, code=self.code)
        return Forbidden(self.reason, code=self.code, scopes=self.request)


ALLOWED = Decision(DecisionOutcome.ALLOW)

# The code is sent with the anonymous 401 too: over plain http, an existing client recognizes a missing repo only by it.
_REPO_NOT_FOUND = "RepoNotFound"
# Without a full stop: an existing client omits this text if its own message already contains it.
HIDDEN_REPO = Decision(DecisionOutcome.HIDE, "Repository not found", code=_REPO_NOT_FOUND)
HIDDEN_REPO_SIGN_IN = Decision(
    DecisionOutcome.HIDE, "Repository not found. If it is private, sign in.", code=_REPO_NOT_FOUND, sign_in=True
)
HIDDEN_COLLECTION = Decision(DecisionOutcome.HIDE, "Collection not found.")
HIDDEN_COLLECTION_SIGN_IN = Decision(
    DecisionOutcome.HIDE, "Collection not found. If it is private, sign in.", sign_in=True
)


def forbid(reason: str, scopes: tuple[str, ...] = (), request: tuple[str, ...] = ()) -> Decision:
    return Decision(DecisionOutcome.FORBID, reason, scopes, request)


def ask_to_sign_in(purpose: str) -> Decision:
    return Decision(DecisionOutcome.FORBID, f"Sign in to {purpose}.", sign_in=True)


def forbid_gated(label: str, *, sign_in: bool) -> Decision:
    """Forbid access to the content of a gated repo. The first sentence is fixed: a client's tests match it."""
    reason = (
        f"Access to {label} is restricted and you are not in the authorized list. Request access on the repo's page."
    )
    return Decision(DecisionOutcome.FORBID, reason, code="GatedRepo", sign_in=sign_in)
