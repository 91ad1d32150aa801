"""The profile page: public details, name, e-mail address, billing flag; and the deletion of the account."""

from typing import Any

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import Caller, actor_of
from hubgate.server.accounts import addresses, own_account
from hubgate.server.accounts import store as account_store
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.model import Person, User
from hubgate.server.accounts.pictures import changes as pictures
from hubgate.server.accounts.pictures import store as picture_store
from hubgate.server.edge.routes import KIB, Handler, Route, own
from hubgate.server.errors import Conflict, FieldErrors, HubError, TooManyRequests
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.http.surface import Surface
from hubgate.server.hub.collections import store as collection_store
from hubgate.server.hub.context import Repos
from hubgate.server.hub.quotas.quotas import usage_of
from hubgate.server.hub.repos import store as repo_store
from hubgate.server.web import cookies
from hubgate.server.web.pages.picture_forms import ROUTE_OPTIONS, read_picture
from hubgate.server.web.rendering import Pages

PATH, RENAME, DELETE = "/settings/profile", "/settings/rename", "/settings/delete"
EMAIL, CONFIRMATION = "/settings/email", "/settings/email/confirmation"
MAIL, BILLING, PICTURE = "/settings/discussion-mail", "/settings/billing", "/settings/picture"
_PROFILE_PAGE, _DELETE_PAGE = "settings/profile.html", "settings/delete.html"
_READ, _WRITE, _CREDENTIALS = Action.ACCOUNT_READ_SETTINGS, Action.ACCOUNT_WRITE_SETTINGS, Action.ACCOUNT_CREDENTIALS


def routes(pages: Pages, accounts: Accounts, repos: Repos) -> list[Route]:
    return [*_profile_routes(pages, accounts, repos), *_deletion_routes(pages, accounts)]


def _profile_routes(pages: Pages, accounts: Accounts, repos: Repos) -> list[Route]:
    def values_for(user: User, **submitted: str) -> dict[str, str]:
        """Values of the fields; rejected input is shown again."""
        return {"fullname": user.fullname, "website": user.website, "username": user.name, "email": "", **submitted}

    async def page_values(user: User, **submitted: str) -> dict[str, Any]:
        wants_mail = await account_store.wants_discussion_mail(accounts.db, user.id)
        return {
            "section": PATH,
            "values": values_for(user, **submitted),
            "wants_discussion_mail": wants_mail,
            "storage": await usage_of(repos, "user", user.id),
            "picture": await picture_store.id_of(accounts.db, user.id),
        }

    async def show_errors(request: HubRequest, user: User, error: HubError, at: str, **submitted: str) -> Response:
        return pages.show_errors(request, _PROFILE_PAGE, error, at, **await page_values(user, **submitted))

    async def profile(request: HubRequest, caller: Caller) -> Response:
        return pages.page(request, _PROFILE_PAGE, **await page_values(caller.user))

    async def save(request: HubRequest, caller: Caller) -> Response:
        user, form = caller.user, request.form_fields
        fullname, website = form.get("fullname"), form.get("website")
        try:
            await own_account.set_profile(accounts, user, fullname, website)
        except FieldErrors as error:
            return await show_errors(request, user, error, "fullname", fullname=fullname, website=website)
        return pages.redirect(PATH, "Profile saved.")

    async def set_picture(request: HubRequest, caller: Caller) -> Response:
        user = caller.user
        try:
            picture = await pictures.draw(accounts, user, await read_picture(request))
        except FieldErrors as error:
            return await show_errors(request, user, error, "picture")
        await pictures.set_of_user(accounts, user, picture)
        return pages.redirect(PATH, "Your picture was saved. Other pages show it within a minute.")

    async def remove_picture(_: HubRequest, caller: Caller) -> Response:
        await pictures.remove_of_user(accounts, caller.user)
        return pages.redirect(PATH, "Your picture was removed.")

    async def set_mail(request: HubRequest, caller: Caller) -> Response:
        wanted, user_id = request.form_fields.get("discussion_mail") == "on", caller.user.id
        await accounts.db.write(lambda tx: account_store.set_discussion_mail(tx, user_id, wanted))
        return pages.redirect(PATH, f"Mail about discussions and access requests is {'on' if wanted else 'off'} now.")

    async def rename(request: HubRequest, caller: Caller) -> Response:
        user, name = caller.user, request.form_fields.get("username").strip()
        try:
            await own_account.rename(accounts, user, name)
        except (FieldErrors, TooManyRequests) as error:
            return await show_errors(request, user, error, "username", username=name)
        return pages.redirect(PATH, f"Your name is now {name}.")

    async def change_email(request: HubRequest, caller: Caller) -> Response:
        user, form = caller.user, request.form_fields
        email = form.get("email").strip()
        try:
            await addresses.request_change(accounts, user, email, form.get("password"))
        except (FieldErrors, TooManyRequests) as error:
            return await show_errors(request, user, error, "email", email=email)
        return pages.redirect(PATH, f"A link is on its way to {email}. Open it to confirm the change.")

    async def resend_confirmation(_: HubRequest, caller: Caller) -> Response:
        user = caller.user
        if user.email_verified_at is not None:
            return pages.redirect(PATH, f"{user.email} is verified.")
        await addresses.resend_confirmation(accounts, user)
        return pages.redirect(PATH, f"A link is on its way to {user.email}.")

    async def set_billing(request: HubRequest, caller: Caller) -> Response:
        can_pay = request.form_fields.get("can_pay") == "on"
        await own_account.set_billing(accounts, caller.user, can_pay)
        return pages.redirect(PATH, f"Billing is {'on' if can_pay else 'off'}.")

    def post(path: str, handler: Handler[Caller], action: Action, summary: str) -> Route:
        return Route("POST", path, own(action, handler), Surface.PAGE, summary, body_cap=16 * KIB)

    return [
        Route("GET", PATH, own(_READ, profile), Surface.PAGE, "Profile, name and e-mail address"),
        post(PATH, save, _WRITE, "Save the profile"),
        Route("POST", PICTURE, own(_WRITE, set_picture), Surface.PAGE, "Upload your picture", **ROUTE_OPTIONS),
        post(f"{PICTURE}/delete", remove_picture, _WRITE, "Remove your picture"),
        post(MAIL, set_mail, _WRITE, "Turn mail about discussions and access requests on or off"),
        post(RENAME, rename, _WRITE, "Change the user name"),
        post(EMAIL, change_email, _CREDENTIALS, "Change the e-mail address"),
        post(BILLING, set_billing, _WRITE, "Set whether a payment method is set up"),
        post(CONFIRMATION, resend_confirmation, _WRITE, "Send the confirmation link again"),
    ]


def _deletion_routes(pages: Pages, accounts: Accounts) -> list[Route]:
    async def page_values(person: Person) -> dict[str, Any]:
        return {
            "section": PATH,
            "consequences": await own_account.deletion_consequences(accounts, person),
            "repos": await repo_store.count_of_owner(accounts.db, person.user.id),
            "collections": await collection_store.count_of_owner(accounts.db, person.user.id),
        }

    async def show(request: HubRequest, caller: Caller) -> Response:
        return pages.page(request, _DELETE_PAGE, typed="", **await page_values(caller.signed_in_person))

    async def delete(request: HubRequest, caller: Caller) -> Response:
        person, form = caller.signed_in_person, request.form_fields
        typed, actor = form.get("name"), actor_of(request)
        try:
            await own_account.delete_own(accounts, person.user, typed, form.get("password"), actor)
        except (FieldErrors, TooManyRequests) as error:
            return pages.show_errors(request, _DELETE_PAGE, error, "password", typed=typed, **await page_values(person))
        except Conflict as error:
            return pages.page(request, _DELETE_PAGE, error.status, typed=typed, **await page_values(person))
        response = pages.redirect("/", "Your account was deleted.")
        cookies.clear_session(response, pages.settings)
        return response

    page = Surface.PAGE
    return [
        Route("GET", DELETE, own(_CREDENTIALS, show), page, "Confirm deleting your account"),
        Route("POST", DELETE, own(_CREDENTIALS, delete), page, "Delete your account", body_cap=16 * KIB),
    ]
