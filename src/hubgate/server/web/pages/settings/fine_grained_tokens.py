"""The form for a fine-grained token: expiry, permissions, organizations and repos. It works without JavaScript."""

from collections.abc import Mapping, Sized
from typing import Any

from msgspec import Struct

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import Caller
from hubgate.server.accounts import single_use_forms
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.field_checks import FieldChecks
from hubgate.server.accounts.model import Person
from hubgate.server.accounts.roles import TokenRole
from hubgate.server.accounts.single_use_forms import AlreadyUsed
from hubgate.server.accounts.tokens import limits, personal
from hubgate.server.accounts.tokens.limits import NewLimit, NewLimits
from hubgate.server.accounts.tokens.model import DEFAULT_LIFETIME, check_token_name, parse_expiry
from hubgate.server.edge.routes import KIB, Route, own
from hubgate.server.errors import FieldErrors
from hubgate.server.http.forms import Fields
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.http.surface import Surface
from hubgate.server.hub.context import Repos
from hubgate.server.web.pages.settings.tokens import EXPIRY_CHOICES
from hubgate.server.web.pages.settings.tokens import PATH as TOKENS
from hubgate.server.web.rendering import NO_ERRORS, Pages
from hubgate.server.web.token_repos import repo_limits

PATH = f"{TOKENS}/fine-grained"


class TokenForm(Struct, frozen=True):
    """The submitted form, which is shown again if it is invalid."""

    name: str = ""
    expires: str = DEFAULT_LIFETIME
    expires_on: str = ""
    everywhere: frozenset[str] = frozenset({"profile"})
    own: frozenset[str] = frozenset()
    orgs: frozenset[str] = frozenset()
    org_scopes: frozenset[str] = frozenset()
    # One name per line.
    repos: str = ""
    repo_scopes: frozenset[str] = frozenset()

    @classmethod
    def parse(cls, form: Fields) -> "TokenForm":
        names = ("everywhere", "own", "orgs", "org_scopes", "repo_scopes")
        return cls(
            name=form.get("name"),
            expires=form.get("expires", DEFAULT_LIFETIME),
            expires_on=form.get("expires_on"),
            repos=form.get("repos"),
            **{name: frozenset(form.all(name)) for name in names},
        )


def routes(pages: Pages, accounts: Accounts, repos: Repos) -> list[Route]:
    def show(
        request: HubRequest, person: Person, form: TokenForm, errors: Mapping[str, str] = NO_ERRORS, **values: Any
    ) -> Response:
        values = {"secret": "", "created": None, "already_used": "", **values}
        return pages.page(
            request,
            "settings/token_fine_grained.html",
            errors=errors,
            section=TOKENS,
            form=form,
            person=person,
            expiry_choices=EXPIRY_CHOICES,
            everywhere=limits.EVERYWHERE_SCOPES,
            owner_scopes=limits.OWNER_SCOPES,
            repo_scopes=limits.REPO_SCOPES,
            max_repos=limits.MAX_REPOS,
            nonce=single_use_forms.new_nonce(accounts, person.user),
            **values,
        )

    async def show_form(request: HubRequest, caller: Caller) -> Response:
        return show(request, caller.signed_in_person, TokenForm())

    async def create(request: HubRequest, caller: Caller) -> Response:
        person, fields = caller.signed_in_person, request.form_fields
        form = TokenForm.parse(fields)
        try:
            nonce = single_use_forms.check_nonce(accounts, person.user, fields.get(single_use_forms.FIELD))
            expires_at, chosen = await checked(caller, person, form)
            secret, created = await personal.create(
                accounts,
                person.user,
                form.name,
                TokenRole.FINE_GRAINED,
                request.client_ip,
                nonce,
                expires_at=expires_at,
                limits=chosen,
            )
        except FieldErrors as error:
            return show(request, person, form, error.fields)
        except AlreadyUsed as error:
            return show(request, person, TokenForm(), already_used=error.message)
        return show(request, person, TokenForm(), secret=secret, created=created)

    async def checked(caller: Caller, person: Person, form: TokenForm) -> tuple[int | None, NewLimits]:
        """The expiry and the limits; FieldErrors names every invalid field."""
        checks, found = FieldChecks(), list[NewLimit]()
        expires_at: int | None = None
        checks.check("name", check_token_name, form.name)
        try:
            expires_at = parse_expiry(form.expires, form.expires_on, accounts.clock())
        except FieldErrors as error:
            _add(checks, error)
        names = form.repos.split()
        _check_pair(checks, form.orgs, form.org_scopes, "orgs", "org_scopes", "an organization")
        _check_pair(checks, names, form.repo_scopes, "repos", "repo_scopes", "a repo")
        try:
            found = await repo_limits(repos, caller.identity, names, form.repo_scopes)
        except FieldErrors as error:
            _add(checks, error)
        places = [
            limits.own_account(person.user, form.own),
            *limits.organizations(person.memberships, form.orgs, form.org_scopes),
            *found,
        ]
        chosen = NewLimits(form.everywhere, tuple(places))
        try:
            limits.check_limits(chosen)
        except FieldErrors as error:
            _add(checks, error)
        checks.raise_errors()
        return expires_at, chosen

    return [
        Route(
            "GET", PATH, own(Action.ACCOUNT_CREDENTIALS, show_form), Surface.PAGE, "The form for a fine-grained token"
        ),
        Route(
            "POST",
            PATH,
            own(Action.ACCOUNT_CREDENTIALS, create),
            Surface.PAGE,
            "Create a fine-grained token",
            body_cap=64 * KIB,
        ),
    ]


def _check_pair(checks: FieldChecks, places: Sized, scopes: Sized, field: str, scope_field: str, place: str) -> None:
    """Permissions need a place, and a place needs permissions."""
    if places and not scopes:
        checks.add_error(scope_field, f"Choose what the token may do there, or choose no {place.split()[-1]}.")
    if scopes and not places:
        checks.add_error(field, f"Choose {place} for these permissions, or untick them.")


def _add(checks: FieldChecks, error: FieldErrors) -> None:
    for name, message in error.fields.items():
        checks.add_error(name, message)
