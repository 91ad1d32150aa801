"""The authorization request of the app that sent the user to the sign-in page."""

from msgspec import Struct

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
from hubgate.server.web.pages.oauth.return_address import Pairs, address_of, parse_address, without_mark


class PendingRequest(Struct, frozen=True):
    """The values that the sign-in page shows. `host` is empty if no app requested the sign-in."""

    host: str = ""
    # Initial value of the name field.
    username: str = ""
    # Link to continue with the current session; empty if the app requires a new sign-in.
    stay: str = ""


async def pending_request(oauth: OAuth, request: HubRequest, next_page: str) -> PendingRequest:
    """Validate the request as the authorize page will, so that a forged address cannot show a host on this page."""
    try:
        pairs = parse_address(next_page)
        if pairs is None:
            return PendingRequest()
        user_id = caller_of(request).identity.user_id
        auth_request = await parse(oauth, without_mark(pairs), request.client_ip, user_id)
    except (BadRequest, RedirectedError, TooManyRequests):
        return PendingRequest()
    host = auth_request.app.document_host or shown_host(auth_request.return_address.redirect_uri)
    return PendingRequest(
        host,
        auth_request.login_hint or _signed_in_name(request, auth_request),
        _continue_address(oauth, request, auth_request, pairs),
    )


def _signed_in_name(request: HubRequest, auth_request: AuthorizationRequest) -> str:
    """The name to fill in for a user who has to sign in again."""
    person = caller_of(request).person
    return person.user.name if person and "select_account" not in auth_request.prompt else ""


def _continue_address(oauth: OAuth, request: HubRequest, auth_request: AuthorizationRequest, pairs: Pairs) -> str:
    caller, now = caller_of(request), oauth.clock()
    if caller.session is None:
        return ""
    mark = SignInMark(caller.session.id, now, same_session=True)
    if isinstance(next_step(auth_request, Visit(now, caller.person, caller.session, mark=mark)), SignIn):
        return ""
    return address_of([*without_mark(pairs), (sign_in_mark.PARAMETER, sign_in_mark.write(mark, pairs, oauth.secret))])
