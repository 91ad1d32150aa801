"""`hubgate admin app create | list | delete | refresh-secret | grant-* | revoke-*`."""

import argparse
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from hubgate.cli.admin import common
from hubgate.server.accounts.model import Owner
from hubgate.server.audit.model import SYSTEM
from hubgate.server.clock import iso
from hubgate.server.errors import Conflict
from hubgate.server.oauth.apps import management, privileges
from hubgate.server.oauth.apps.fields import DEFAULT_SCOPES
from hubgate.server.oauth.apps.model import App, ExchangeSettings
from hubgate.server.oauth.cimd import granted_scopes
from hubgate.server.oauth.cimd.model import GrantedScopes
from hubgate.server.resources import Hub


def configure(subjects: Any) -> None:
    commands = common.group(subjects, "app", "apps that users sign in to")
    create = common.add(commands, "create", "register an app and print its secret once", _create)
    create.add_argument("name", metavar="NAME")
    owner = create.add_mutually_exclusive_group(required=True)
    owner.add_argument("--owner", metavar="USER")
    owner.add_argument("--org", metavar="ORG")
    create.add_argument("--redirect-uri", action="append", default=[], metavar="U", help="may be repeated")
    create.add_argument(
        "--post-logout-redirect-uri",
        action="append",
        default=[],
        metavar="U",
        help="where users return after a sign-out; may be repeated",
    )
    create.add_argument(
        "--scope",
        action="append",
        default=[],
        metavar="S",
        help=f"may be repeated (default {' '.join(DEFAULT_SCOPES)})",
    )
    create.add_argument("--public", action="store_true", help="create a public app, which has no secret")
    create.add_argument(
        "--refresh-tokens", action="store_true", help="issue refresh tokens, which expire 90 days after the last use"
    )
    create.add_argument("--client-id", default="", metavar="ID", help="a client ID of your choice (default random)")
    create.add_argument("--token-exchange", action="store_true", help="allow token exchange (organization's apps only)")
    common.add(commands, "list", "list all apps", _list)
    _add_for_app(commands, "delete", "delete an app with every consent and token", _delete)
    _add_for_app(
        commands, "refresh-secret", "create a new secret and print it once; the old secret stops working", _refresh
    )
    _add_for_app(commands, "grant-token-exchange", "allow an organization's app to exchange tokens", _grant_exchange)
    _add_for_app(commands, "revoke-token-exchange", "revoke token exchange and the exchanged tokens", _revoke_exchange)
    grant = _add_for_app(
        commands,
        "grant-scope",
        "grant a scope from [[extra_scopes]] to an app, or to the URL of its metadata document",
        _grant_scope,
    )
    grant.add_argument("scope", metavar="SCOPE")
    revoke = _add_for_app(commands, "revoke-scope", "revoke a scope from the app and from every consent", _revoke_scope)
    revoke.add_argument("scope", metavar="SCOPE")


def _add_for_app(
    commands: Any, name: str, summary: str, run: Callable[[argparse.Namespace], int]
) -> argparse.ArgumentParser:
    parser = common.add(commands, name, summary, run)
    parser.add_argument("client_id", metavar="CLIENT_ID")
    return parser


def _create(options: argparse.Namespace) -> int:
    async def work(hub: Hub) -> dict[str, Any]:
        if options.org is not None:
            owner = Owner(org_id=(await common.find_organization(hub, options.org)).id)
        else:
            owner = Owner(user_id=(await common.find_user(hub, options.owner)).id)
            if options.token_exchange:
                raise Conflict("Only an organization's app may exchange tokens. Use --org.")
        draft = App(
            client_id=options.client_id,
            name=options.name,
            redirect_uris=tuple(options.redirect_uri),
            post_logout_redirect_uris=tuple(options.post_logout_redirect_uri),
            scopes=tuple(options.scope or DEFAULT_SCOPES),
            confidential=not options.public,
            refresh_tokens=options.refresh_tokens,
            exchange=ExchangeSettings(privileged=options.token_exchange),
        )
        app, secret = await management.create(hub.oauth, owner, draft, SYSTEM)
        return await _with_secret(hub, app, secret)

    created = common.with_hub(options, work)
    return _print_secret(options, created, f"Created {created['name']}.")


def _refresh(options: argparse.Namespace) -> int:
    async def work(hub: Hub) -> dict[str, Any]:
        app = await privileges.get(hub.oauth, options.client_id)
        secret = await management.refresh_secret(hub.oauth, app, 0, SYSTEM)
        return await _with_secret(hub, await privileges.get(hub.oauth, app.client_id), secret)

    created = common.with_hub(options, work)
    return _print_secret(options, created, f"{created['name']} has a new secret. The old one no longer works.")


def _print_secret(options: argparse.Namespace, created: dict[str, Any], sentence: str) -> int:
    lines = [sentence, f"client_id      {created['client_id']}"]
    if created["client_secret"] is not None:
        lines.append(f"client_secret  {created['client_secret']}")
        if sys.stdout.isatty():
            lines.append(common.SHOWN_ONCE)
    return common.print_result(options, created, "\n".join(lines))


def _list(options: argparse.Namespace) -> int:
    async def work(hub: Hub) -> list[dict[str, Any]]:
        registered = [await _describe(hub, app) for app in await privileges.list_all(hub.oauth)]
        return [*registered, *map(_document, await granted_scopes.list_all(hub.oauth))]

    rows = common.with_hub(options, work)
    cells = [[r["client_id"], r["name"], r["owner"], _kind(r), r["created_at"][:10]] for r in rows]
    return common.print_rows(options, rows, ["CLIENT ID", "NAME", "OWNER", "KIND", "CREATED"], cells)


def _kind(row: dict[str, Any]) -> str:
    words = ["has a secret" if row["confidential"] else "public"]
    words += ["metadata document"] if row["document"] else ["self-registered"] if row["self_registered"] else []
    return ", ".join([*words, *(["token exchange"] if row["token_exchange"] else []), *row["extra_scopes"]])


def _delete(options: argparse.Namespace) -> int:
    async def work(hub: Hub) -> App:
        app = await privileges.get(hub.oauth, options.client_id)
        await management.delete(hub.oauth, app, SYSTEM)
        return app

    deleted = common.with_hub(options, work)
    value = {"deleted": deleted.client_id, "name": deleted.name}
    return common.print_result(options, value, f"Deleted {deleted.name} with every consent and token.")


def _grant_exchange(options: argparse.Namespace) -> int:
    async def change(hub: Hub) -> App:
        return await privileges.set_exchange(hub.oauth, options.client_id, True, SYSTEM)

    return _change_and_print(
        options, change, "{name} may exchange tokens, if its organization is on the Enterprise plan."
    )


def _revoke_exchange(options: argparse.Namespace) -> int:
    async def change(hub: Hub) -> App:
        return await privileges.set_exchange(hub.oauth, options.client_id, False, SYSTEM)

    return _change_and_print(options, change, "{name} may no longer exchange tokens.")


def _grant_scope(options: argparse.Namespace) -> int:
    async def work(hub: Hub) -> dict[str, Any]:
        if hub.oauth.documents.is_document_url(options.client_id):
            return _document(await granted_scopes.grant(hub.oauth, options.client_id, options.scope))
        await privileges.get(hub.oauth, options.client_id)
        return await _describe(hub, await privileges.grant_scope(hub.oauth, options.client_id, options.scope, SYSTEM))

    changed = common.with_hub(options, work)
    return common.print_result(options, changed, f"{changed['name']} may request {options.scope}.")


def _revoke_scope(options: argparse.Namespace) -> int:
    async def work(hub: Hub) -> dict[str, Any]:
        if hub.oauth.documents.is_document_url(options.client_id):
            return _document(await granted_scopes.revoke(hub.oauth, options.client_id, options.scope))
        await privileges.get(hub.oauth, options.client_id)
        return await _describe(hub, await privileges.revoke_scope(hub.oauth, options.client_id, options.scope, SYSTEM))

    changed = common.with_hub(options, work)
    return common.print_result(options, changed, f"{changed['name']} no longer has {options.scope}.")


def _change_and_print(options: argparse.Namespace, change: Callable[[Hub], Awaitable[App]], sentence: str) -> int:
    async def work(hub: Hub) -> dict[str, Any]:
        await privileges.get(hub.oauth, options.client_id)
        return await _describe(hub, await change(hub))

    changed = common.with_hub(options, work)
    return common.print_result(options, changed, sentence.format(name=changed["name"]))


async def _with_secret(hub: Hub, app: App, secret: str | None) -> dict[str, Any]:
    return {"client_id": app.client_id, "client_secret": secret, **await _describe(hub, app)}


async def _describe(hub: Hub, app: App) -> dict[str, Any]:
    """An app as JSON, in snake case like OAuth's `client_id`: the output is copied into client configurations."""
    owner = await management.owner_name(hub.oauth, app)
    return {
        "client_id": app.client_id,
        "name": app.name,
        "document": False,
        "self_registered": app.self_registered,
        "owner": owner.removeprefix("@"),
        "organization": owner.removeprefix("@") if app.org_id is not None else None,
        "redirect_uris": list(app.redirect_uris),
        "post_logout_redirect_uris": list(app.post_logout_redirect_uris),
        "scopes": list(app.scopes),
        "extra_scopes": list(app.extra_scopes),
        "confidential": app.confidential,
        "refresh_tokens": app.refresh_tokens,
        "token_exchange": app.exchange.privileged,
        "created_at": iso(app.created_at),
    }


def _document(granted: GrantedScopes) -> dict[str, Any]:
    """An app with a metadata document, in the form of `_describe`. Its name is in the document, which is not read."""
    return {
        "client_id": granted.client_id,
        "name": granted.client_id,
        "document": True,
        "self_registered": False,
        "owner": "",
        "organization": None,
        "extra_scopes": list(granted.scopes),
        "confidential": False,
        "token_exchange": False,
        "created_at": iso(granted.created_at),
    }
