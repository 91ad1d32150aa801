"""What the sign-in page says of the app that sent somebody there."""

from dataclasses import dataclass

from hubgate.server.access.caller import caller_of
from hubgate.server.errors import BadRequest, TooManyRequests
from hubgate.server.http.request import HubRequest
from hubgate.server.oauth.authorize import mark
from hubgate.server.oauth.authorize.mark import Mark
from hubgate.server.oauth.authorize.next_step import SignIn, Visit, next_step
from hubgate.server.oauth.authorize.request import AuthorizationRequest, SentBack
from hubgate.server.oauth.authorize.rules import understood
from hubgate.server.oauth.context import OAuth
from hubgate.server.oauth.redirects import shown_host
from hubgate.server.web.pages.oauth.way_back import Pairs, address_of, pairs_in, without_mark


@dataclass(frozen=True)
class Asking:
    """`host` is empty where no app asked."""

    host: str = ""
    # What the name field begins with.
    username: str = ""
    # The way on for whoever is signed in already; empty where the app wants a new sign-in.
    stay: str = ""


async def asking(oauth: OAuth, request: HubRequest, next_page: str) -> Asking:
    """Judged as the authorize page will judge it, so that no made-up address can name a host here."""
    try:
        pairs = pairs_in(next_page)
        if pairs is None:
            return Asking()
        asked = await understood(oauth, without_mark(pairs), request.client_ip)
    except (BadRequest, SentBack, TooManyRequests):
        return Asking()
    host = asked.app.document_host or shown_host(asked.to.redirect_uri)
    return Asking(host, asked.login_hint or _own_name(request, asked), _stay(oauth, request, asked, pairs))


def _own_name(request: HubRequest, asked: AuthorizationRequest) -> str:
    """Who has to sign in again need not type the name again."""
    person = caller_of(request).person
    return person.user.name if person and "select_account" not in asked.prompt else ""


def _stay(oauth: OAuth, request: HubRequest, asked: AuthorizationRequest, pairs: Pairs) -> str:
    caller, now = caller_of(request), oauth.clock()
    if caller.session is None:
        return ""
    kept = Mark(caller.session.id, now, kept=True)
    if isinstance(next_step(asked, Visit(now, caller.person, caller.session, mark=kept)), SignIn):
        return ""
    return address_of([*without_mark(pairs), (mark.PARAMETER, mark.write(kept, pairs, oauth.secret))])
