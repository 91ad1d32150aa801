"""Token exchange of an organization's app: its state, its limits, a dry run, and the members with active tokens."""

from collections.abc import Mapping
from typing import Any

from hubgate.server.edge.routes import Route
from hubgate.server.errors import FieldErrors, Unprocessable
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.oauth.apps import management
from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.exchange import issued_tokens
from hubgate.server.oauth.exchange.exchange import dry_run
from hubgate.server.oauth.exchange.model import Granted
from hubgate.server.web.exchanged_tokens import parse_ip
from hubgate.server.web.owner_routes import OwnerContext
from hubgate.server.web.pages.listing import ListQuery
from hubgate.server.web.pages.oauth.apps.form import ROLES, apply_limits, format_lifetime, lifetimes, limitable_scopes
from hubgate.server.web.pages.oauth.apps.page_context import ONE, AppPageContext
from hubgate.server.web.rendering import NO_ERRORS

PATH = f"{ONE}/exchange"


def routes(base: AppPageContext) -> list[Route]:
    async def show(
        request: HubRequest, context: OwnerContext, app: App, errors: Mapping[str, str] = NO_ERRORS, **values: Any
    ) -> Response:
        at = context.address_of(app.client_id)
        list_query = ListQuery(request.query(), f"{at}/exchange")
        members = await issued_tokens.by_member(base.oauth, app, list_query.page(issued_tokens.MEMBER_CURSOR))
        blank = {"draft": app, "quota": app.exchange.daily_quota or "", "subject": "", "scope": "", "ip": ""}
        values = {**blank, "verdict": None, **values}
        return base.show(
            request,
            context,
            "exchange.html",
            errors,
            app=app,
            at=at,
            durations=lifetimes(values["draft"].exchange.duration),
            duration=format_lifetime(app.exchange.duration),
            scopes=limitable_scopes(app),
            roles=ROLES,
            members=members.items,
            live=await issued_tokens.count(base.oauth, app),
            **list_query.template_values(members.next_cursor),
            **values,
        )

    async def show_exchange(request: HubRequest, context: OwnerContext) -> Response:
        return await show(request, context, await base.app(request, context))

    async def set_limits(request: HubRequest, context: OwnerContext) -> Response:
        app, form = await base.app(request, context), request.form_fields
        try:
            await management.update(base.oauth, app, lambda latest: apply_limits(latest, form), context.actor)
        except FieldErrors as error:
            draft = apply_limits(app, form)
            return await show(request, context, app, error.fields, draft=draft, quota=form.get("dailyQuota"))
        return base.pages.redirect(
            f"{context.address_of(app.client_id)}/exchange", "Saved the limits of token exchange."
        )

    async def simulate(request: HubRequest, context: OwnerContext) -> Response:
        app, form = await base.app(request, context), request.form_fields
        subject, scope, ip = (form.get(name).strip() for name in ("subjectToken", "scope", "ip"))
        given: dict[str, Any] = {"subject": subject, "scope": scope, "ip": ip}
        if errors := _field_errors(subject, ip):
            return await show(request, context, app, errors, **given)
        verdict = await dry_run(base.oauth, app, subject, scope or None, parse_ip(ip) if ip else None)
        return await show(request, context, app, verdict=_verdict_values(verdict), **given)

    def _verdict_values(verdict: Any) -> dict[str, Any]:
        if isinstance(verdict, Granted):
            return {"member": verdict.member, "scopes": verdict.scopes}
        return {"member": None, "why": verdict.why, "error": verdict.error.code}

    return [
        base.organization_route("GET", PATH, show_exchange, "Token exchange of an app"),
        base.organization_route("POST", PATH, set_limits, "Limit token exchange"),
        base.organization_route("POST", f"{PATH}/dry-run", simulate, "Simulate a token exchange"),
    ]


def _field_errors(subject: str, ip: str) -> dict[str, str]:
    errors = {} if subject else {"subjectToken": "Enter the e-mail address of a member."}
    try:
        parse_ip(ip or "::")
    except Unprocessable as error:
        errors["ip"] = error.message
    return errors
