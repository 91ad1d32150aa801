"""Token exchange of an organization's app: its state, its limits, a dry run, and the members it has tokens for."""

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from hubgate.server.edge.routes import Route
from hubgate.server.errors import FieldErrors, Unprocessable
from hubgate.server.http.request import HubRequest
from hubgate.server.oauth.apps import management
from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.exchange import issued_tokens
from hubgate.server.oauth.exchange.exchange import dry_run
from hubgate.server.oauth.exchange.model import Granted
from hubgate.server.web.exchanged_tokens import check_ip
from hubgate.server.web.owner_routes import OwnerContext
from hubgate.server.web.pages.listing import ListQuery
from hubgate.server.web.pages.oauth.apps.form import ROLES, in_words, lifetimes, limitable_scopes, limited
from hubgate.server.web.pages.oauth.apps.frame import ONE, Frame
from hubgate.server.web.rendering import NO_ERRORS

PATH = f"{ONE}/exchange"


def routes(frame: Frame) -> list[Route]:
    async def show(
        request: HubRequest, context: OwnerContext, app: App, errors: Mapping[str, str] = NO_ERRORS, **values: Any
    ) -> Response:
        at = context.at(app.client_id)
        asked = ListQuery(request.query(), f"{at}/exchange")
        members = await issued_tokens.by_member(frame.oauth, app, asked.page(issued_tokens.BY_MEMBER))
        blank = {"draft": app, "quota": app.exchange.daily_quota or "", "subject": "", "scope": "", "ip": ""}
        values = {**blank, "verdict": None, **values}
        return frame.show(
            request,
            context,
            "exchange.html",
            errors,
            app=app,
            at=at,
            durations=lifetimes(values["draft"].exchange.duration),
            duration=in_words(app.exchange.duration),
            scopes=limitable_scopes(app),
            roles=ROLES,
            members=members.items,
            live=await issued_tokens.count(frame.oauth, app),
            **asked.shown(members.next_cursor),
            **values,
        )

    async def one(request: HubRequest, context: OwnerContext) -> Response:
        return await show(request, context, await frame.app(request, context))

    async def limit(request: HubRequest, context: OwnerContext) -> Response:
        app, form = await frame.app(request, context), request.form_fields
        try:
            await management.update(frame.oauth, app, lambda latest: limited(latest, form), context.actor)
        except FieldErrors as error:
            draft = limited(app, form)
            return await show(request, context, app, error.fields, draft=draft, quota=form.get("dailyQuota"))
        return frame.pages.redirect(f"{context.at(app.client_id)}/exchange", "Saved the limits of token exchange.")

    async def try_out(request: HubRequest, context: OwnerContext) -> Response:
        app, form = await frame.app(request, context), request.form_fields
        subject, scope, ip = (form.get(name).strip() for name in ("subjectToken", "scope", "ip"))
        given: dict[str, Any] = {"subject": subject, "scope": scope, "ip": ip}
        if errors := _field_errors(subject, ip):
            return await show(request, context, app, errors, **given)
        verdict = await dry_run(frame.oauth, app, subject, scope or None, check_ip(ip) if ip else None)
        return await show(request, context, app, verdict=_verdict_values(verdict), **given)

    def _verdict_values(verdict: Any) -> dict[str, Any]:
        if isinstance(verdict, Granted):
            return {"member": verdict.member, "scopes": verdict.scopes}
        return {"member": None, "why": verdict.why, "error": verdict.error.code}

    return [
        frame.organization_route("GET", PATH, one, "Token exchange of an app"),
        frame.organization_route("POST", PATH, limit, "Limit token exchange"),
        frame.organization_route("POST", f"{PATH}/dry-run", try_out, "What a token exchange would give"),
    ]


def _field_errors(subject: str, ip: str) -> dict[str, str]:
    errors = {} if subject else {"subjectToken": "Write the e-mail address of a member."}
    try:
        check_ip(ip or "::")
    except Unprocessable as error:
        errors["ip"] = error.message
    return errors
