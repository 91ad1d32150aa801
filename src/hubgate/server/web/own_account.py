"""Pages and routes that serve the caller's own account: nobody names another's there."""

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import Caller, caller_of
from hubgate.server.access.policy import require
from hubgate.server.access.resource import NOBODY, Account
from hubgate.server.http.request import HubRequest


def require_own(request: HubRequest, action: Action) -> Caller:
    """The caller, if they may do that to their own account; a visitor is asked to sign in."""
    caller = caller_of(request)
    own = NOBODY if caller.person is None else Account(caller.person.user.id)
    require(caller.identity, action, own)
    return caller
