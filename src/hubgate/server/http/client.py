"""The client of a request, as the one its jobs are charged to and stopped for (`jobs/caller.py`)."""

from contextvars import Token

from hubgate.server.http.request import HubRequest
from hubgate.server.jobs.caller import Caller, caller_of_context

_READING = frozenset({"GET", "HEAD"})


def enter(request: HubRequest) -> Token[Caller]:
    """Jobs begun from here on are this client's, charged to its address until the guard knows more."""
    request.jobs_for = Caller(request.client_ip, may_abandon=request.method in _READING)
    return caller_of_context.set(request.jobs_for)


def leave(request: HubRequest, token: Token[Caller]) -> None:
    request.jobs_for.close()
    if request.bounded is not None:
        request.bounded.close()
    caller_of_context.reset(token)
