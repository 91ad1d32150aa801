"""All users, for the operator: verify an address, disable or enable an account, send a reset link."""

from collections.abc import Awaitable, Callable

from starlette.responses import Response

from hubgate.server.access.caller import actor_of, caller_of
from hubgate.server.accounts import operator_actions, operator_lists
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.limits import RESET_MAILS_BY_OPERATOR
from hubgate.server.accounts.model import User
from hubgate.server.edge.routes import PublicHandler, Route
from hubgate.server.errors import Conflict
from hubgate.server.http.request import HubRequest
from hubgate.server.web.named import user_named
from hubgate.server.web.pages.listing import ListQuery, return_address
from hubgate.server.web.pages.operator.route import operator_route
from hubgate.server.web.rendering import Pages

_PATH = "/operator/users"

# The effect of a button on a user; returns the message to show.
_ButtonAction = Callable[[HubRequest, User], Awaitable[str]]


def routes(pages: Pages, accounts: Accounts) -> list[Route]:
    async def show(request: HubRequest) -> Response:
        asked = ListQuery(request.query(), _PATH)
        found = await operator_lists.users(accounts, asked.page(operator_lists.CURSOR), asked.search)
        return pages.page(
            request,
            "operator/users.html",
            section=_PATH,
            users=found.items,
            **asked.shown(found.next_cursor),
        )

    async def verify(_: HubRequest, user: User) -> str:
        await operator_actions.verify(accounts, user)
        return f"{user.email} counts as verified."

    async def disable(request: HubRequest, user: User) -> str:
        if user.id == caller_of(request).user.id:
            raise Conflict("You cannot disable your own account. Another operator can.")
        await operator_actions.disable(accounts, user, actor_of(request))
        return f"Disabled {user.name}. Sign-ins and tokens stopped working."

    async def enable(_: HubRequest, user: User) -> str:
        await operator_actions.enable(accounts, user)
        return f"Enabled {user.name}."

    async def reset(_: HubRequest, user: User) -> str:
        await accounts.limiter.take(RESET_MAILS_BY_OPERATOR, user.email)
        await operator_actions.send_reset(accounts, user)
        return f"A reset link is on its way to {user.email}."

    def button(act: _ButtonAction) -> PublicHandler:
        async def press(request: HubRequest) -> Response:
            user = await user_named(accounts, request.param("user"))
            return pages.redirect(return_address(request, _PATH), await act(request, user))

        return press

    return [
        operator_route("GET", _PATH, show, "Every user"),
        operator_route("POST", _PATH + "/{user}/verify", button(verify), "Vouch for a user's address"),
        operator_route("POST", _PATH + "/{user}/disable", button(disable), "Switch an account off"),
        operator_route("POST", _PATH + "/{user}/enable", button(enable), "Switch an account on"),
        operator_route("POST", _PATH + "/{user}/reset", button(reset), "Mail a reset link"),
    ]
