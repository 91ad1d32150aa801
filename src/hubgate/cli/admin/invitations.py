"""`hubgate admin invite create EMAIL`."""

import argparse
from typing import Any

from hubgate.cli.admin import leaf
from hubgate.server.accounts.organizations import invitations
from hubgate.server.clock import iso
from hubgate.server.resources import Hub


def configure(subjects: Any) -> None:
    commands = leaf.group(subjects, "invite", "invitations to this hub")
    create = leaf.add(commands, "create", "mail a link that lets one person join, and print it", _create)
    create.add_argument("email", metavar="EMAIL")


def _create(options: argparse.Namespace) -> int:
    async def work(hub: Hub) -> dict[str, str]:
        expires_at = hub.clock() + invitations.LASTS
        link = await invitations.invite_to_hub(hub.accounts, options.email)
        return {"email": options.email, "link": link, "expiresAt": iso(expires_at)}

    invitation = leaf.with_hub(options, work)
    return leaf.say(options, invitation, f"Mailed to {invitation['email']}, good for seven days: {invitation['link']}")
