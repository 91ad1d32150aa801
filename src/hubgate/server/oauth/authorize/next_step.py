"""The dispatcher: from what the app asked, who is signed in and what was allowed before, to what happens now. Pure."""

from dataclasses import dataclass

from hubgate.server.accounts.model import Person
from hubgate.server.accounts.sessions.model import Session
from hubgate.server.clock import SECOND
from hubgate.server.oauth.authorize.mark import Mark
from hubgate.server.oauth.authorize.request import AuthorizationRequest
from hubgate.server.oauth.consent.model import Consent


@dataclass(frozen=True)
class SignIn:
    """For the first time, or again: not freshly enough, or not as the user the app expects."""


@dataclass(frozen=True)
class AskConsent:
    pass


@dataclass(frozen=True)
class GiveCode:
    """Everything asked was allowed before."""


@dataclass(frozen=True)
class Refuse:
    error: str
    description: str


Step = SignIn | AskConsent | GiveCode | Refuse


@dataclass(frozen=True)
class Visit:
    """Who is at the browser, and what they allowed this app before. `mark` is what they brought from the sign-in page;
    one without person and session is somebody who is not signed in.
    """

    now: int
    person: Person | None = None
    session: Session | None = None
    consent: Consent | None = None
    # The scopes approved on a page that showed the same servers and, of an app on a device, the same address.
    approved: frozenset[str] | None = None
    mark: Mark | None = None

    @property
    def is_fresh(self) -> bool:
        """They signed in for this very request."""
        return self.mark is not None and self.session is not None and self.mark.is_left_behind(self.session)

    @property
    def is_chosen(self) -> bool:
        return self.mark is not None and self.session is not None and self.mark.is_kept(self.session)


def next_step(request: AuthorizationRequest, visit: Visit) -> Step:
    silent = "none" in request.prompt
    if visit.person is None or visit.session is None:
        return Refuse("login_required", "Nobody is signed in.") if silent else SignIn()
    if request.expected_user not in (None, visit.person.user.id):
        # Asked once more, whoever has no such account would be asked for ever.
        refused = silent or visit.is_fresh
        return Refuse("login_required", "Another user is signed in.") if refused else SignIn()
    if not visit.is_fresh and _is_stale(request, visit, visit.session):
        return Refuse("login_required", "The user has to sign in again.") if silent else SignIn()
    if _is_allowed_already(request, visit, visit.person):
        return GiveCode()
    return Refuse("consent_required", "The user has to be asked.") if silent else AskConsent()


def _is_stale(request: AuthorizationRequest, visit: Visit, session: Session) -> bool:
    if "login" in request.prompt:
        return True
    if "select_account" in request.prompt and not visit.is_chosen:
        return True
    if request.max_age is None:
        return False
    # Zero is another way to say prompt=login (OpenID Connect Core, section 3.1.2.1).
    return request.max_age == 0 or visit.now - session.created_at > request.max_age * SECOND


def _is_allowed_already(request: AuthorizationRequest, visit: Visit, person: Person) -> bool:
    if visit.consent is None or visit.approved is None or "consent" in request.prompt:
        return False
    own = {org for org in request.organizations if org in person.roles}
    elsewhere = bool(request.resources)
    return visit.approved >= set(request.scopes) and visit.consent.covers(
        request.scopes, own, request.app.face, elsewhere
    )
