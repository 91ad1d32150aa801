"""`hubgate admin org create | list | set-plan | add-member | remove-member | rename | delete`."""

import argparse
from collections.abc import Awaitable, Callable
from typing import Any

from hubgate.cli.admin import leaf, named
from hubgate.server.accounts import operator_actions
from hubgate.server.accounts.model import PLANS, Organization
from hubgate.server.accounts.organizations import members, settings
from hubgate.server.accounts.roles import Role
from hubgate.server.audit.model import SYSTEM
from hubgate.server.clock import iso
from hubgate.server.errors import Conflict
from hubgate.server.resources import Hub

_ROLES = [role.label for role in Role]


def configure(subjects: Any) -> None:
    commands = leaf.group(subjects, "org", "organizations and their members")
    create = _on_one(commands, "create", "found an organization", _create)
    create.add_argument("--owner", required=True, metavar="USER", help="its first admin")
    create.add_argument("--fullname", default="", metavar="F")
    create.add_argument("--plan", choices=PLANS, default=PLANS[0])
    leaf.add(commands, "list", "every organization, oldest first", _list)
    _on_one(commands, "set-plan", "change its plan", _set_plan).add_argument("plan", choices=PLANS, metavar="PLAN")
    add = _on_one(commands, "add-member", "make someone a member, or give a member another role", _add_member, "ORG")
    add.add_argument("user", metavar="USER")
    add.add_argument("--role", required=True, choices=_ROLES)
    remove = _on_one(commands, "remove-member", "take someone out; the last admin stays", _remove_member, "ORG")
    remove.add_argument("user", metavar="USER")
    rename = _on_one(
        commands, "rename", "give it another name; one held for a day or with repos stays reserved", _rename, "OLD"
    )
    rename.add_argument("new", metavar="NEW")
    _on_one(commands, "delete", "delete permanently; a name used for a day or with repos stays reserved", _delete)


def _on_one(
    commands: Any, name: str, summary: str, run: Callable[[argparse.Namespace], int], metavar: str = "NAME"
) -> argparse.ArgumentParser:
    parser = leaf.add(commands, name, summary, run)
    parser.add_argument("name", metavar=metavar)
    return parser


def _create(options: argparse.Namespace) -> int:
    async def work(hub: Hub) -> Organization:
        owner = await named.user(hub, options.owner)
        return await settings.create(hub.accounts, owner, options.name, options.fullname, SYSTEM, options.plan)

    created = leaf.with_hub(options, work)
    sentence = f"Created {created.name} on the {created.plan} plan. {options.owner} is its admin."
    return leaf.say(options, named.described_organization(created), sentence)


def _list(options: argparse.Namespace) -> int:
    found = leaf.with_hub(options, lambda hub: operator_actions.every_organization(hub.accounts))
    values = [{**named.described_organization(each), "members": count} for each, count in found]
    cells = [[each.name, each.plan, str(count), iso(each.created_at)[:10]] for each, count in found]
    return leaf.show(options, values, ["NAME", "PLAN", "MEMBERS", "CREATED"], cells)


def _set_plan(options: argparse.Namespace) -> int:
    async def change(hub: Hub, organization: Organization) -> None:
        await settings.set_plan(hub.accounts, organization, options.plan, SYSTEM)

    changed = _changed(options, change)
    return leaf.say(options, named.described_organization(changed), f"{changed.name} is on the {changed.plan} plan.")


def _rename(options: argparse.Namespace) -> int:
    async def change(hub: Hub, organization: Organization) -> None:
        await settings.rename(hub.accounts, organization, options.new, SYSTEM)

    changed = _changed(options, change, options.new)
    sentence = f"{options.name} is now {changed.name}."
    return leaf.say(options, named.described_organization(changed), sentence)


def _changed(
    options: argparse.Namespace, change: Callable[[Hub, Organization], Awaitable[None]], name: str | None = None
) -> Organization:
    """Change an organization and return it. `name` is its new name, if the change renames it."""

    async def work(hub: Hub) -> Organization:
        await change(hub, await named.organization(hub, options.name))
        return await named.organization(hub, name or options.name)

    return leaf.with_hub(options, work)


def _add_member(options: argparse.Namespace) -> int:
    role = Role.parse(options.role)

    async def work(hub: Hub) -> dict[str, str]:
        organization, user = await named.organization(hub, options.name), await named.user(hub, options.user)
        try:
            await members.add(hub.accounts, organization, user, role, SYSTEM)
        except Conflict:
            await members.change_role(hub.accounts, organization, user, role, SYSTEM)
        return {"organization": organization.name, "user": user.name, "role": role.label}

    member = leaf.with_hub(options, work)
    return leaf.say(options, member, f"{member['user']} is {member['role']} in {member['organization']}.")


def _remove_member(options: argparse.Namespace) -> int:
    async def work(hub: Hub) -> dict[str, str]:
        organization, user = await named.organization(hub, options.name), await named.user(hub, options.user)
        await members.remove(hub.accounts, organization, user, SYSTEM)
        return {"organization": organization.name, "removed": user.name}

    done = leaf.with_hub(options, work)
    return leaf.say(options, done, f"{done['removed']} is no longer a member of {done['organization']}.")


def _delete(options: argparse.Namespace) -> int:
    async def work(hub: Hub) -> Organization:
        organization = await named.organization(hub, options.name)
        await settings.delete(hub.accounts, organization, SYSTEM)
        return organization

    deleted = leaf.with_hub(options, work)
    return leaf.say(options, {"deleted": deleted.name, "id": deleted.id}, f"Deleted {deleted.name}.")
