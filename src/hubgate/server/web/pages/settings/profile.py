"""The profile: public details, the name, the e-mail address."""

from starlette.responses import Response

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import Caller
from hubgate.server.accounts import addresses, own_account
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.model import User
from hubgate.server.edge.routes import KIB, Handler, Route, own
from hubgate.server.errors import FieldErrors, HubError, TooManyRequests
from hubgate.server.http.request import HubRequest
from hubgate.server.http.surface import Surface
from hubgate.server.web.rendering import Pages

PATH = "/settings/profile"
RENAME = "/settings/rename"
EMAIL = "/settings/email"
CONFIRMATION = "/settings/email/confirmation"
_TEMPLATE = "settings/profile.html"
_READ, _WRITE, _CREDENTIALS = Action.ACCOUNT_READ_SETTINGS, Action.ACCOUNT_WRITE_SETTINGS, Action.ACCOUNT_CREDENTIALS


def routes(pages: Pages, accounts: Accounts) -> list[Route]:
    def values_for(user: User, **given: str) -> dict[str, str]:
        """Values of the fields; rejected input is shown again."""
        return {"fullname": user.fullname, "website": user.website, "username": user.name, "email": "", **given}

    def show_errors(request: HubRequest, user: User, error: HubError, at: str, **given: str) -> Response:
        return pages.show_errors(request, _TEMPLATE, error, at, section=PATH, values=values_for(user, **given))

    async def profile(request: HubRequest, caller: Caller) -> Response:
        return pages.page(request, _TEMPLATE, section=PATH, values=values_for(caller.user))

    async def save(request: HubRequest, caller: Caller) -> Response:
        user, form = caller.user, request.form_fields
        fullname, website = form.get("fullname"), form.get("website")
        try:
            await own_account.set_profile(accounts, user, fullname, website)
        except FieldErrors as error:
            return show_errors(request, user, error, "fullname", fullname=fullname, website=website)
        return pages.redirect(PATH, "Profile saved.")

    async def rename(request: HubRequest, caller: Caller) -> Response:
        user, name = caller.user, request.form_fields.get("username").strip()
        try:
            await own_account.rename(accounts, user, name)
        except (FieldErrors, TooManyRequests) as error:
            return show_errors(request, user, error, "username", username=name)
        return pages.redirect(PATH, f"Your name is now {name}.")

    async def change_email(request: HubRequest, caller: Caller) -> Response:
        user, form = caller.user, request.form_fields
        email = form.get("email").strip()
        try:
            await addresses.ask_change(accounts, user, email, form.get("password"))
        except (FieldErrors, TooManyRequests) as error:
            return show_errors(request, user, error, "email", email=email)
        return pages.redirect(PATH, f"A link is on its way to {email}. Open it there: until then nothing changes.")

    async def confirm_again(_: HubRequest, caller: Caller) -> Response:
        user = caller.user
        if user.email_verified_at is not None:
            return pages.redirect(PATH, f"{user.email} is verified.")
        await addresses.ask_confirmation(accounts, user)
        return pages.redirect(PATH, f"A link is on its way to {user.email}.")

    def post(path: str, handler: Handler[Caller], action: Action, summary: str) -> Route:
        return Route("POST", path, own(action, handler), Surface.PAGE, summary, body_cap=16 * KIB)

    return [
        Route("GET", PATH, own(_READ, profile), Surface.PAGE, "Profile, name and e-mail address"),
        post(PATH, save, _WRITE, "Save the profile"),
        post(RENAME, rename, _WRITE, "Take another name"),
        post(EMAIL, change_email, _CREDENTIALS, "Move to another e-mail address"),
        post(CONFIRMATION, confirm_again, _WRITE, "Send the confirmation link again"),
    ]
