"""What the sign-in page says about the app that sent the user there."""

from dataclasses import dataclass

from hubgate.server.access.caller import caller_of
from hubgate.server.errors import BadRequest, TooManyRequests
from hubgate.server.http.request import HubRequest
from hubgate.server.oauth.authorize import sign_in_mark
from hubgate.server.oauth.authorize.next_step import SignIn, Visit, next_step
from hubgate.server.oauth.authorize.request import AuthorizationRequest, RedirectedError
from hubgate.server.oauth.authorize.rules import parse
from hubgate.server.oauth.authorize.sign_in_mark import SignInMark
from hubgate.server.oauth.context import OAuth
from hubgate.server.oauth.redirects import shown_host
from hubgate.server.web.pages.oauth.return_address import Pairs, address_of, pairs_in, without_mark


@dataclass(frozen=True)
class PendingRequest:
    """`host` is empty if no app requested the sign-in."""

    host: str = ""
    # Initial value of the name field.
    username: str = ""
    # Link to continue with the present session; empty if the app requires a new sign-in.
    stay: str = ""


async def pending_request(oauth: OAuth, request: HubRequest, next_page: str) -> PendingRequest:
    """Judge the request as the authorize page will, so that a forged address cannot name a host here."""
    try:
        pairs = pairs_in(next_page)
        if pairs is None:
            return PendingRequest()
        asked = await parse(oauth, without_mark(pairs), request.client_ip)
    except (BadRequest, RedirectedError, TooManyRequests):
        return PendingRequest()
    host = asked.app.document_host or shown_host(asked.to.redirect_uri)
    return PendingRequest(
        host, asked.login_hint or _signed_in_name(request, asked), _continue_address(oauth, request, asked, pairs)
    )


def _signed_in_name(request: HubRequest, asked: AuthorizationRequest) -> str:
    """A user who has to sign in again need not type the name."""
    person = caller_of(request).person
    return person.user.name if person and "select_account" not in asked.prompt else ""


def _continue_address(oauth: OAuth, request: HubRequest, asked: AuthorizationRequest, pairs: Pairs) -> str:
    caller, now = caller_of(request), oauth.clock()
    if caller.session is None:
        return ""
    keep_session = SignInMark(caller.session.id, now, same_session=True)
    if isinstance(next_step(asked, Visit(now, caller.person, caller.session, mark=keep_session)), SignIn):
        return ""
    return address_of(
        [*without_mark(pairs), (sign_in_mark.PARAMETER, sign_in_mark.write(keep_session, pairs, oauth.secret))]
    )
