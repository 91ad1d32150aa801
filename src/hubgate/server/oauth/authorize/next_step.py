"""The dispatcher: from what the app asked, who is signed in and what was allowed before, to what happens now. Pure."""

from dataclasses import dataclass

from hubgate.server.accounts.model import Person
from hubgate.server.clock import SECOND
from hubgate.server.oauth.authorize.request import AuthorizationRequest
from hubgate.server.oauth.consent.model import Consent
from hubgate.server.oauth.redirects import is_loopback, is_web


@dataclass(frozen=True)
class SignIn:
    """`again`: someone is signed in, but not freshly enough or not as expected."""

    again: bool


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
    """Who is at the browser. `signed_in_at` is when the session began; `consent` is theirs for this app."""

    person: Person | None
    signed_in_at: int
    consent: Consent | None
    now: int
    # Set on the way to the sign-in page: a session that began before this does not count.
    not_before: int = 0


def next_step(request: AuthorizationRequest, visit: Visit) -> Step:
    silent = "none" in request.prompt
    if visit.person is None:
        return Refuse("login_required", "Nobody is signed in.") if silent else SignIn(again=False)
    if _must_sign_in_again(request, visit):
        return Refuse("login_required", "The user has to sign in again.") if silent else SignIn(again=True)
    if _is_allowed_already(request, visit):
        return GiveCode()
    return Refuse("consent_required", "The user has to be asked.") if silent else AskConsent()


def _must_sign_in_again(request: AuthorizationRequest, visit: Visit) -> bool:
    if visit.person is None:
        return True
    if request.expected_user is not None and request.expected_user != visit.person.user.id:
        return True
    if request.max_age is not None and visit.now - visit.signed_in_at > request.max_age * SECOND:
        return True
    if request.prompt & {"login", "select_account"}:
        return not visit.not_before or visit.signed_in_at < visit.not_before
    return False


def _is_allowed_already(request: AuthorizationRequest, visit: Visit) -> bool:
    if visit.consent is None or visit.person is None or "consent" in request.prompt:
        return False
    app, uri = request.app, request.to.redirect_uri
    if app.document_host and (is_loopback(uri) or not is_web(uri)):
        # Anyone's program can take such an address and show this document's name: only the user can tell.
        return False
    own = {org for org in request.organizations if org in visit.person.roles}
    return visit.consent.covers(request.scopes, own, app.face)
