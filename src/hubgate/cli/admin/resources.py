"""`hubgate admin resource create | list | refresh-secret | delete`."""

import argparse
import sys
from typing import Any

from hubgate.cli.admin import common
from hubgate.server.accounts.model import Owner
from hubgate.server.audit.model import SYSTEM
from hubgate.server.clock import iso
from hubgate.server.errors import Conflict, NotFound
from hubgate.server.oauth.resource_names import canonical
from hubgate.server.oauth.resource_servers import management, store
from hubgate.server.oauth.resource_servers.model import OPAQUE, TOKEN_FORMATS, ResourceScope, ResourceServer
from hubgate.server.resources import Hub


def configure(subjects: Any) -> None:
    commands = common.group(subjects, "resource", "APIs and MCP servers that accept tokens of this hub")
    create = common.add(
        commands, "create", "register a resource server without proof of control and print its secret once", _create
    )
    create.add_argument("identifier", metavar="IDENTIFIER", help="its address, such as https://mcp.example/mcp")
    create.add_argument("--name", required=True, metavar="N", help="shown on the consent page")
    owner = create.add_mutually_exclusive_group(required=True)
    owner.add_argument("--owner", metavar="USER")
    owner.add_argument("--org", metavar="ORG")
    create.add_argument(
        "--scope", action="append", default=[], metavar="S", help="NAME or NAME=TEXT for the consent page; repeatable"
    )
    create.add_argument("--tokens", choices=TOKEN_FORMATS, default=OPAQUE, help=f"default {OPAQUE}")
    common.add(commands, "list", "list all resource servers", _list)
    refresh = common.add(
        commands, "refresh-secret", "create a new secret and print it once; the old secret stops working", _refresh
    )
    delete = common.add(commands, "delete", "delete a resource server", _delete)
    for parser in (refresh, delete):
        parser.add_argument("identifier", metavar="IDENTIFIER", help="or the id of the resource server")


def _create(options: argparse.Namespace) -> int:
    async def work(hub: Hub) -> dict[str, Any]:
        if options.org is not None:
            owner = Owner(org_id=(await common.find_organization(hub, options.org)).id)
        else:
            owner = Owner(user_id=(await common.find_user(hub, options.owner)).id)
        scopes = tuple(map(_scope, options.scope))
        draft = ResourceServer("", options.identifier, options.name, scopes, options.tokens)
        server, secret = await management.create_vouched(hub.oauth, owner, draft, SYSTEM)
        return await _with_secret(hub, server, secret)

    created = common.with_hub(options, work)
    return _print_secret(options, created, f"Registered {created['name']}.")


def _refresh(options: argparse.Namespace) -> int:
    async def work(hub: Hub) -> dict[str, Any]:
        server = await _find(hub, options.identifier)
        return await _with_secret(hub, server, await management.refresh_secret(hub.oauth, server, 0, SYSTEM))

    created = common.with_hub(options, work)
    return _print_secret(options, created, f"{created['name']} has a new secret. The old one no longer works.")


def _print_secret(options: argparse.Namespace, created: dict[str, Any], sentence: str) -> int:
    lines = [sentence, f"id      {created['id']}", f"secret  {created['secret']}"]
    if sys.stdout.isatty():
        lines.append(common.SHOWN_ONCE)
    return common.print_result(options, created, "\n".join(lines))


def _scope(given: str) -> ResourceScope:
    name, _, text = given.partition("=")
    return ResourceScope(name, text or f"Use {name}")


def _list(options: argparse.Namespace) -> int:
    async def work(hub: Hub) -> list[dict[str, Any]]:
        return [await _describe(hub, server) for server in await hub.db.read_long(store.list_all)]

    rows = common.with_hub(options, work)
    cells = [[r["id"], r["identifier"], r["name"], r["owner"], "yes" if r["active"] else "no"] for r in rows]
    return common.print_rows(options, rows, ["ID", "IDENTIFIER", "NAME", "OWNER", "ACTIVE"], cells)


def _delete(options: argparse.Namespace) -> int:
    async def work(hub: Hub) -> ResourceServer:
        server = await _find(hub, options.identifier)
        await management.delete(hub.oauth, server, SYSTEM)
        return server

    deleted = common.with_hub(options, work)
    value = {"deleted": deleted.id, "identifier": deleted.identifier, "name": deleted.name}
    return common.print_result(options, value, f"Deleted {deleted.name}.")


async def _find(hub: Hub, given: str) -> ResourceServer:
    if server := await store.find(hub.db, given):
        return server
    found = await hub.db.read_long(lambda tx: store.named(tx, canonical(given)))
    # Others may have registered the identifier without proving control of it.
    candidates = [server for server in found if server.is_active] or found
    if not candidates:
        raise NotFound(f"Resource server {given} not found. List all with: hubgate admin resource list")
    if len(candidates) > 1:
        ids = ", ".join(server.id for server in candidates)
        raise Conflict(f"Several owners have registered {given}. Name one by its id: {ids}")
    return candidates[0]


async def _with_secret(hub: Hub, server: ResourceServer, secret: str) -> dict[str, Any]:
    return {"identifier": server.identifier, "secret": secret, **await _describe(hub, server)}


async def _describe(hub: Hub, server: ResourceServer) -> dict[str, Any]:
    """A resource server as JSON, with the field names of the API."""
    owner = (await management.owner_name(hub.oauth, server)).removeprefix("@")
    return {
        "id": server.id,
        "identifier": server.identifier,
        "name": server.name,
        "owner": owner,
        "organization": owner if server.org_id is not None else None,
        "scopes": [{"name": scope.name, "text": scope.text} for scope in server.scopes],
        "tokens": server.tokens,
        "active": server.is_active,
        "createdAt": iso(server.created_at),
    }
