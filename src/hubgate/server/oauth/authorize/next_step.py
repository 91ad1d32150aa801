"""The dispatcher: chooses the next step from the request, the signed-in user and earlier consent. Pure."""

from msgspec import Struct

from hubgate.server.accounts.model import Person
from hubgate.server.accounts.sessions.model import Session
from hubgate.server.clock import SECOND
from hubgate.server.oauth.authorize.request import AuthorizationRequest
from hubgate.server.oauth.authorize.sign_in_mark import SignInMark
from hubgate.server.oauth.consent.model import Consent


class SignIn(Struct, frozen=True):
    """The user has to sign in: not signed in, not recently enough, or not as the user the app expects."""


class AskConsent(Struct, frozen=True):
    pass


class IssueCode(Struct, frozen=True):
    """Issue a code without asking: the user approved everything before."""


class Reject(Struct, frozen=True):
    error: str
    description: str


_CONSENT_REQUIRED = Reject("consent_required", "The user has to approve the request.")
_EXPECTED_USER_ABSENT = Reject("login_required", "The expected user is not signed in, or has not approved the app.")

Step = SignIn | AskConsent | IssueCode | Reject


class Visit(Struct, frozen=True):
    """The signed-in user and their earlier consent to this app; nobody is signed in if person and session are None.

    `mark` is the sign-in mark in the URL, if any.
    """

    now: int
    person: Person | None = None
    session: Session | None = None
    consent: Consent | None = None
    # Scopes approved on a consent page with the same servers and, for a native app, the same redirect URI.
    approved: frozenset[str] | None = None
    mark: SignInMark | None = None

    @property
    def is_fresh(self) -> bool:
        """Whether the user signed in for this request."""
        return self.mark is not None and self.session is not None and self.mark.is_new_session(self.session)

    @property
    def session_is_chosen(self) -> bool:
        """Whether the user chose to continue with the current session for this request."""
        return self.mark is not None and self.session is not None and self.mark.is_same_session(self.session)


def next_step(request: AuthorizationRequest, visit: Visit) -> Step:
    silent = "none" in request.prompt
    if visit.person is None or visit.session is None:
        return Reject("login_required", "Nobody is signed in.") if silent else SignIn()
    if silent and visit.consent is None:
        # An app that the user has not approved learns neither who is signed in nor since when.
        return _CONSENT_REQUIRED if request.expected_user is None else _EXPECTED_USER_ABSENT
    if request.expected_user not in (None, visit.person.user.id):
        # A second sign-in page would loop for a user without the expected account.
        rejected = silent or visit.is_fresh
        return Reject("login_required", "Another user is signed in.") if rejected else SignIn()
    if not visit.is_fresh and _is_stale(request, visit, visit.session):
        return Reject("login_required", "The user has to sign in again.") if silent else SignIn()
    if _is_approved(request, visit, visit.person):
        return IssueCode()
    return _CONSENT_REQUIRED if silent else AskConsent()


def _is_stale(request: AuthorizationRequest, visit: Visit, session: Session) -> bool:
    if "login" in request.prompt:
        return True
    if "select_account" in request.prompt and not visit.session_is_chosen:
        return True
    if request.max_age is None:
        return False
    # Zero is equivalent to prompt=login (OpenID Connect Core, section 3.1.2.1).
    return request.max_age == 0 or visit.now - session.created_at > request.max_age * SECOND


def _is_approved(request: AuthorizationRequest, visit: Visit, person: Person) -> bool:
    if visit.consent is None or visit.approved is None or "consent" in request.prompt:
        return False
    requested = {org for org in request.organizations if org in person.roles}
    return visit.approved >= set(request.scopes) and visit.consent.covers(request.access, requested)
