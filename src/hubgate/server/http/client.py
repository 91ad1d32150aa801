"""Charges the jobs of a request to its client, and stops them when the client disconnects (`jobs/caller.py`)."""

from contextvars import Token

from hubgate.server.http.request import HubRequest
from hubgate.server.jobs.caller import Caller, caller_of_context

_READ_ONLY = frozenset({"GET", "HEAD"})


def enter(request: HubRequest) -> Token[Caller]:
    """Charge jobs started from here on to this client: to its address until the guard finds the user."""
    request.jobs_for = Caller(request.client_ip, may_abandon=request.method in _READ_ONLY)
    return caller_of_context.set(request.jobs_for)


def leave(request: HubRequest, token: Token[Caller]) -> None:
    request.jobs_for.close()
    if request.bounded is not None:
        request.bounded.close()
    caller_of_context.reset(token)
