"""`/operator/users`: all users, what an operator may do for them, and invitations to the hub."""

from collections.abc import Awaitable, Callable

from hubgate.server.access.caller import actor_of, caller_of
from hubgate.server.accounts import operator_actions
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.limits import INVITATION_MAILS, RESET_MAILS_BY_OPERATOR
from hubgate.server.accounts.model import User
from hubgate.server.accounts.organizations import invitations
from hubgate.server.edge.routes import PublicHandler, Route
from hubgate.server.errors import Conflict, HubError, TooManyRequests, Unprocessable
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.web.account_paths import user_named
from hubgate.server.web.pages.listing import ListQuery, return_address
from hubgate.server.web.pages.operator.frame import OperatorPages, operator_route

_PATH = "/operator/users"
_INVITATIONS = "/operator/invitations"
_TEMPLATE = "users.html"

# The effect of a button on a user; returns the message to show.
_ButtonAction = Callable[[HubRequest, User], Awaitable[str]]


def routes(frame: OperatorPages, accounts: Accounts) -> list[Route]:
    return [*_list_routes(frame, accounts), *_button_routes(frame, accounts)]


def _list_routes(frame: OperatorPages, accounts: Accounts) -> list[Route]:
    async def show_list(request: HubRequest, email: str = "", error: HubError | None = None) -> Response:
        query = ListQuery(request.query(), _PATH)
        found = await operator_actions.list_users(accounts, query.page(operator_actions.CURSOR), query.search)
        values = {"users": found.items, "email": email, **query.template_values(found.next_cursor)}
        if error is not None:
            return await frame.show_errors(request, _TEMPLATE, _PATH, error, "email", **values)
        return await frame.page(request, _TEMPLATE, _PATH, **values)

    async def show(request: HubRequest) -> Response:
        return await show_list(request)

    async def invite(request: HubRequest) -> Response:
        email = request.form_fields.get("email").strip()
        try:
            await accounts.limiter.take(INVITATION_MAILS, email.lower())
            await invitations.invite_to_hub(accounts, email)
        except (Conflict, Unprocessable, TooManyRequests) as error:
            return await show_list(request, email, error)
        return frame.pages.redirect(_PATH, f"Invited {email}. The link in the mail is valid for seven days.")

    return [
        operator_route("GET", _PATH, show, "All users"),
        operator_route("POST", _INVITATIONS, invite, "Invite somebody to the hub"),
    ]


def _button_routes(frame: OperatorPages, accounts: Accounts) -> list[Route]:
    async def verify(_: HubRequest, user: User) -> str:
        await operator_actions.verify(accounts, user)
        return f"{user.email} is now verified."

    async def disable(request: HubRequest, user: User) -> str:
        if user.id == caller_of(request).user.id:
            raise Conflict("You cannot disable your own account. Another operator can.")
        await operator_actions.disable(accounts, user, actor_of(request))
        return f"Disabled {user.name}. Sessions and tokens no longer work."

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
            return frame.pages.redirect(return_address(request, _PATH), await act(request, user))

        return press

    one = _PATH + "/{user}"
    return [
        operator_route("POST", one + "/verify", button(verify), "Mark a user's e-mail address as verified"),
        operator_route("POST", one + "/disable", button(disable), "Disable an account"),
        operator_route("POST", one + "/enable", button(enable), "Enable an account"),
        operator_route("POST", one + "/reset", button(reset), "Mail a reset link"),
    ]
