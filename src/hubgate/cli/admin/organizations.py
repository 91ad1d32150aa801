"""`hubgate admin org create | list | set-plan | add-member | remove-member | rename | delete`, and `billing set`."""

import argparse
from collections.abc import Awaitable, Callable
from typing import Any

from hubgate.cli.admin import common
from hubgate.server.accounts import operator_actions, store
from hubgate.server.accounts.model import PLANS, Organization
from hubgate.server.accounts.organizations import members, settings
from hubgate.server.accounts.roles import Role
from hubgate.server.audit.model import SYSTEM
from hubgate.server.clock import iso
from hubgate.server.errors import Conflict, NotFound
from hubgate.server.resources import Hub

_ROLES = [role.label for role in Role]


def configure(subjects: Any) -> None:
    commands = common.group(subjects, "org", "organizations and their members")
    create = _add_for_organization(commands, "create", "create an organization", _create)
    create.add_argument("--owner", required=True, metavar="USER", help="its first admin")
    create.add_argument("--fullname", default="", metavar="F")
    create.add_argument("--plan", choices=PLANS, default=PLANS[0])
    common.add(commands, "list", "list all organizations, oldest first", _list)
    _add_for_organization(commands, "set-plan", "change an organization's plan", _set_plan).add_argument(
        "plan", choices=PLANS, metavar="PLAN"
    )
    add = _add_for_organization(commands, "add-member", "add a member, or change a member's role", _add_member, "ORG")
    add.add_argument("user", metavar="USER")
    add.add_argument("--role", required=True, choices=_ROLES)
    remove = _add_for_organization(
        commands, "remove-member", "remove a member; the last admin cannot be removed", _remove_member, "ORG"
    )
    remove.add_argument("user", metavar="USER")
    rename = _add_for_organization(
        commands,
        "rename",
        "rename an organization; an old name with repos, or used for at least a day, stays reserved",
        _rename,
        "OLD",
    )
    rename.add_argument("new", metavar="NEW")
    _add_for_organization(
        commands, "delete", "delete permanently; a name with repos, or used for at least a day, stays reserved", _delete
    )
    _configure_billing(subjects)


def _configure_billing(subjects: Any) -> None:
    commands = common.group(subjects, "billing", "whether a user or an organization has a payment method")
    change = common.add(commands, "set", "set whether an account has a payment method", _set_billing)
    change.add_argument("name", metavar="NAME", help="name of a user or an organization")
    change.add_argument("state", choices=("on", "off"))


def _add_for_organization(
    commands: Any, name: str, summary: str, run: Callable[[argparse.Namespace], int], metavar: str = "NAME"
) -> argparse.ArgumentParser:
    parser = common.add(commands, name, summary, run)
    parser.add_argument("name", metavar=metavar)
    return parser


def _create(options: argparse.Namespace) -> int:
    async def work(hub: Hub) -> Organization:
        owner = await common.find_user(hub, options.owner)
        return await settings.create(hub.accounts, owner, options.name, options.fullname, SYSTEM, options.plan)

    created = common.with_hub(options, work)
    sentence = f"Created {created.name} on the {created.plan} plan. {options.owner} is its admin."
    return common.print_result(options, common.describe_organization(created), sentence)


def _list(options: argparse.Namespace) -> int:
    found = common.with_hub(options, lambda hub: operator_actions.every_organization(hub.accounts))
    values = [{**common.describe_organization(each), "members": count} for each, count in found]
    cells = [[each.name, each.plan, str(count), iso(each.created_at)[:10]] for each, count in found]
    return common.print_rows(options, values, ["NAME", "PLAN", "MEMBERS", "CREATED"], cells)


def _set_plan(options: argparse.Namespace) -> int:
    async def change(hub: Hub, organization: Organization) -> None:
        await settings.set_plan(hub.accounts, organization, options.plan, SYSTEM)

    changed = _change(options, change)
    return common.print_result(
        options, common.describe_organization(changed), f"{changed.name} is on the {changed.plan} plan."
    )


def _rename(options: argparse.Namespace) -> int:
    async def change(hub: Hub, organization: Organization) -> None:
        await settings.rename(hub.accounts, organization, options.new, SYSTEM)

    changed = _change(options, change, options.new)
    sentence = f"{options.name} is now {changed.name}."
    return common.print_result(options, common.describe_organization(changed), sentence)


def _change(
    options: argparse.Namespace, change: Callable[[Hub, Organization], Awaitable[None]], name: str | None = None
) -> Organization:
    """Change an organization and return it. `name` is its new name, if the change renames it."""

    async def work(hub: Hub) -> Organization:
        await change(hub, await common.find_organization(hub, options.name))
        return await common.find_organization(hub, name or options.name)

    return common.with_hub(options, work)


def _add_member(options: argparse.Namespace) -> int:
    role = Role.parse(options.role)

    async def work(hub: Hub) -> dict[str, str]:
        organization, user = (
            await common.find_organization(hub, options.name),
            await common.find_user(hub, options.user),
        )
        try:
            await members.add(hub.accounts, organization, user, role, SYSTEM)
        except Conflict:
            await members.change_role(hub.accounts, organization, user, role, SYSTEM)
        return {"organization": organization.name, "user": user.name, "role": role.label}

    member = common.with_hub(options, work)
    sentence = f"{member['user']} has the role {member['role']} in {member['organization']}."
    return common.print_result(options, member, sentence)


def _remove_member(options: argparse.Namespace) -> int:
    async def work(hub: Hub) -> dict[str, str]:
        organization, user = (
            await common.find_organization(hub, options.name),
            await common.find_user(hub, options.user),
        )
        await members.remove(hub.accounts, organization, user, SYSTEM)
        return {"organization": organization.name, "removed": user.name}

    done = common.with_hub(options, work)
    return common.print_result(options, done, f"{done['removed']} is no longer a member of {done['organization']}.")


def _delete(options: argparse.Namespace) -> int:
    async def work(hub: Hub) -> Organization:
        organization = await common.find_organization(hub, options.name)
        await settings.delete(hub.accounts, organization, SYSTEM)
        return organization

    deleted = common.with_hub(options, work)
    return common.print_result(options, {"deleted": deleted.name, "id": deleted.id}, f"Deleted {deleted.name}.")


def _set_billing(options: argparse.Namespace) -> int:
    can_pay = options.state == "on"

    async def work(hub: Hub) -> dict[str, Any]:
        if user := await store.user_by_name(hub.db, options.name):
            await operator_actions.set_billing(hub.accounts, user, can_pay)
            return common.describe_user(await common.find_user(hub, options.name))
        if organization := await store.organization_by_name(hub.db, options.name):
            await settings.set_billing_by_operator(hub.accounts, organization, can_pay, SYSTEM)
            return common.describe_organization(await common.find_organization(hub, options.name))
        raise NotFound(f"User or organization {options.name} not found.")

    changed = common.with_hub(options, work)
    return common.print_result(options, changed, f"{changed['name']} has {'a' if can_pay else 'no'} payment method.")
