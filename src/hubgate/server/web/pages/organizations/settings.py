"""Creating an organization; for its admins, its profile, name and billing flag, and its deletion."""

from collections.abc import Mapping
from typing import Any

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import Caller, actor_of, caller_of
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.model import Organization
from hubgate.server.accounts.organizations import settings, store
from hubgate.server.accounts.pictures import changes as pictures
from hubgate.server.accounts.pictures import store as picture_store
from hubgate.server.edge.routes import KIB, Handler, Route, own
from hubgate.server.errors import FieldErrors, TooManyRequests
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import RedirectResponse, Response
from hubgate.server.http.surface import Surface
from hubgate.server.hub.collections import store as collection_store
from hubgate.server.hub.context import Repos
from hubgate.server.hub.quotas.quotas import usage_of
from hubgate.server.hub.repos import store as repo_store
from hubgate.server.web.account_paths import address_of, organization_route
from hubgate.server.web.pages.organizations.members import PATH as MEMBERS
from hubgate.server.web.pages.picture_forms import ROUTE_OPTIONS, read_picture
from hubgate.server.web.rendering import NO_ERRORS, Pages

_NEW = "/organizations/new"
_ROOT = "/organizations/{name}/settings"
_PROFILE, _DELETE = f"{_ROOT}/profile", f"{_ROOT}/delete"
_PROFILE_PAGE = "organization/profile.html"
_CHANGE = Action.ORG_WRITE_SETTINGS


def routes(pages: Pages, accounts: Accounts, repos: Repos) -> list[Route]:
    return [
        *_creation_routes(pages, accounts),
        *_profile_routes(pages, accounts, repos),
        *_deletion_routes(pages, accounts),
    ]


def _creation_routes(pages: Pages, accounts: Accounts) -> list[Route]:
    async def show(request: HubRequest, _: Caller) -> Response:
        return pages.page(request, "organization/new.html", name="", fullname="")

    async def create(request: HubRequest, caller: Caller) -> Response:
        owner, form = caller.user, request.form_fields
        name, fullname = form.get("name").strip(), form.get("fullname")
        try:
            organization = await settings.create(accounts, owner, name, fullname, actor_of(request))
        except FieldErrors as error:
            return pages.page(request, "organization/new.html", errors=error.fields, name=name, fullname=fullname)
        return pages.redirect(address_of(MEMBERS, organization.name), f"Created {organization.name}.")

    return [
        Route("GET", _NEW, own(Action.ACCOUNT_WRITE_SETTINGS, show), Surface.PAGE, "Create an organization"),
        Route(
            "POST",
            _NEW,
            own(Action.ACCOUNT_WRITE_SETTINGS, create),
            Surface.PAGE,
            "Create an organization",
            body_cap=16 * KIB,
        ),
    ]


def _profile_routes(pages: Pages, accounts: Accounts, repos: Repos) -> list[Route]:
    async def values(organization: Organization, **submitted: str) -> dict[str, Any]:
        """Values of the fields; rejected input is shown again."""
        return {
            "organization": organization,
            "section": address_of(_PROFILE, organization.name),
            "fields": {
                "fullname": organization.fullname,
                "website": organization.website,
                "name": organization.name,
                **submitted,
            },
            "storage": await usage_of(repos, "org", organization.id),
            "picture": await picture_store.id_of(accounts.db, organization.id),
        }

    async def redirect_to_profile(_: HubRequest, organization: Organization) -> Response:
        return RedirectResponse(address_of(_PROFILE, organization.name), 303)

    async def show(request: HubRequest, organization: Organization) -> Response:
        return pages.page(request, _PROFILE_PAGE, **await values(organization))

    async def save(request: HubRequest, organization: Organization) -> Response:
        fullname, website = request.form_fields.get("fullname"), request.form_fields.get("website")
        try:
            await settings.set_profile(accounts, organization, fullname, website, actor_of(request))
        except FieldErrors as error:
            return pages.show_errors(
                request,
                _PROFILE_PAGE,
                error,
                "fullname",
                **await values(organization, fullname=fullname, website=website),
            )
        return pages.redirect(address_of(_PROFILE, organization.name), "Saved.")

    async def set_picture(request: HubRequest, organization: Organization) -> Response:
        try:
            picture = await pictures.draw(accounts, caller_of(request).user, await read_picture(request))
        except FieldErrors as error:
            return pages.show_errors(request, _PROFILE_PAGE, error, "picture", **await values(organization))
        await pictures.set_of_organization(accounts, organization, picture, actor_of(request))
        return pages.redirect(
            address_of(_PROFILE, organization.name), "The picture was saved. Other pages show it within a minute."
        )

    async def remove_picture(request: HubRequest, organization: Organization) -> Response:
        await pictures.remove_of_organization(accounts, organization, actor_of(request))
        return pages.redirect(address_of(_PROFILE, organization.name), "The picture was removed.")

    async def set_billing(request: HubRequest, organization: Organization) -> Response:
        can_pay = request.form_fields.get("can_pay") == "on"
        await settings.set_billing(accounts, organization, can_pay, actor_of(request))
        return pages.redirect(address_of(_PROFILE, organization.name), "Saved.")

    async def rename(request: HubRequest, organization: Organization) -> Response:
        name = request.form_fields.get("name").strip()
        try:
            await settings.rename(accounts, organization, name, actor_of(request))
        except (FieldErrors, TooManyRequests) as error:
            return pages.show_errors(request, _PROFILE_PAGE, error, "name", **await values(organization, name=name))
        return pages.redirect(address_of(_PROFILE, name), f"Renamed to {name}.")

    def page(
        method: str, path: str, handler: Handler[Organization], action: Action, summary: str, **more: Any
    ) -> Route:
        surface, more = Surface.PAGE, {"body_cap": 16 * KIB, **more}
        return organization_route(accounts, method, _ROOT + path, handler, surface, action, summary, **more)

    return [
        page("GET", "", redirect_to_profile, Action.ORG_READ_SETTINGS, "An organization's settings"),
        page("GET", "/profile", show, Action.ORG_READ_SETTINGS, "An organization's profile"),
        page("POST", "/profile", save, _CHANGE, "Change an organization's profile"),
        page("POST", "/picture", set_picture, _CHANGE, "Upload an organization's picture", **ROUTE_OPTIONS),
        page("POST", "/picture/delete", remove_picture, _CHANGE, "Remove an organization's picture"),
        page("POST", "/billing", set_billing, _CHANGE, "Set whether a payment method is set up"),
        page("POST", "/rename", rename, _CHANGE, "Rename an organization"),
    ]


def _deletion_routes(pages: Pages, accounts: Accounts) -> list[Route]:
    async def show(
        request: HubRequest, organization: Organization, errors: Mapping[str, str] = NO_ERRORS, typed: str = ""
    ) -> Response:
        now = accounts.clock()
        return pages.page(
            request,
            "organization/delete.html",
            errors=errors,
            organization=organization,
            section="",
            repos=await repo_store.count_of_owner(accounts.db, organization.id),
            collections=await collection_store.count_of_owner(accounts.db, organization.id),
            members=await store.count_members(accounts.db, organization.id),
            invitations=await store.count_invitations(accounts.db, organization.id, now),
            typed=typed,
        )

    async def delete(request: HubRequest, organization: Organization) -> Response:
        typed = request.form_fields.get("name").strip()
        if typed != organization.name:
            return await show(
                request, organization, {"name": f"Type {organization.name}, exactly as shown here."}, typed
            )
        await settings.delete(accounts, organization, actor_of(request))
        return pages.redirect("/settings/organizations", f"Deleted {organization.name}.")

    summary = "Delete an organization"
    return [
        organization_route(accounts, "GET", _DELETE, show, Surface.PAGE, _CHANGE, summary),
        organization_route(accounts, "POST", _DELETE, delete, Surface.PAGE, _CHANGE, summary, body_cap=16 * KIB),
    ]
