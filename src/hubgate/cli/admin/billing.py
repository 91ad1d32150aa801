"""`hubgate admin billing set NAME on|off`: whether a user or an organization has a payment method."""

import argparse
from typing import Any

from hubgate.cli.admin import leaf, named
from hubgate.server.accounts import operator_actions, store
from hubgate.server.accounts.organizations import settings
from hubgate.server.audit.model import SYSTEM
from hubgate.server.errors import NotFound
from hubgate.server.resources import Hub


def configure(subjects: Any) -> None:
    commands = leaf.group(subjects, "billing", "whether a user or an organization has a payment method")
    change = leaf.add(commands, "set", "say whether it has one", _set)
    change.add_argument("name", metavar="NAME", help="of a user or an organization")
    change.add_argument("state", choices=("on", "off"))


def _set(options: argparse.Namespace) -> int:
    can_pay = options.state == "on"

    async def work(hub: Hub) -> dict[str, Any]:
        if user := await store.user_by_name(hub.db, options.name):
            await operator_actions.set_billing(hub.accounts, user, can_pay)
            return named.described_user(await named.user(hub, options.name))
        if organization := await store.organization_by_name(hub.db, options.name):
            await settings.set_billing_by_operator(hub.accounts, organization, can_pay, SYSTEM)
            return named.described_organization(await named.organization(hub, options.name))
        raise NotFound(f"There is no user or organization {options.name}.")

    changed = leaf.with_hub(options, work)
    return leaf.say(options, changed, f"Billing of {changed['name']} is {options.state}.")
