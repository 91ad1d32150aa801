"""`hubgate admin user create | list | disable | enable | verify | reset-password | delete`, and `invite create`."""

import argparse
import getpass
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from hubgate.cli.admin import common
from hubgate.server.accounts import operator_actions, own_account, signup
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.links.model import Purpose
from hubgate.server.accounts.model import User
from hubgate.server.accounts.organizations import invitations
from hubgate.server.accounts.passwords import LONGEST_PASSWORD, check_password
from hubgate.server.audit.model import SYSTEM
from hubgate.server.clock import iso
from hubgate.server.errors import Unprocessable
from hubgate.server.resources import Hub

# A character of a password may take four bytes.
_LONGEST_LINE = 4 * LONGEST_PASSWORD + 2


def configure(subjects: Any) -> None:
    commands = common.group(subjects, "user", "user accounts")
    create = common.add(commands, "create", "create an account, regardless of HUBGATE_SIGNUP", _create)
    create.add_argument("name", metavar="NAME")
    create.add_argument("--email", required=True, metavar="E")
    create.add_argument("--fullname", default="", metavar="F")
    create.add_argument("--password-stdin", action="store_true", help="read the password from standard input, one line")
    create.add_argument("--operator", action="store_true", help="allow the user to use the operator's pages")
    create.add_argument("--verified", action="store_true", help="mark the address as verified; no mail is sent")
    common.add(commands, "list", "list all accounts, oldest first", _list)
    _add_for_user(commands, "disable", "end the user's sessions, and reject sign-in and tokens until enabled", _disable)
    _add_for_user(commands, "enable", "enable a disabled account", _enable)
    _add_for_user(commands, "verify", "mark the user's e-mail address as verified", _verify)
    _add_for_user(commands, "reset-password", "mail a link that sets a new password, and print it", _reset_password)
    _add_for_user(
        commands, "delete", "delete permanently; a name with repos, or used for at least a day, stays reserved", _delete
    )
    _configure_invitations(subjects)


def _configure_invitations(subjects: Any) -> None:
    commands = common.group(subjects, "invite", "invitations to this hub")
    create = common.add(commands, "create", "mail a link that lets one person join, and print it", _invite)
    create.add_argument("email", metavar="EMAIL")


def _add_for_user(commands: Any, name: str, summary: str, run: Callable[[argparse.Namespace], int]) -> None:
    common.add(commands, name, summary, run).add_argument("name", metavar="NAME")


def _create(options: argparse.Namespace) -> int:
    password = _read_password() if options.password_stdin else ""
    candidate = signup.Candidate(options.name, options.email, password, options.fullname)

    async def create(hub: Hub) -> User:
        return await signup.create_by_operator(
            hub.accounts, candidate, verified=options.verified, operator=options.operator
        )

    created = common.with_hub(options, create)
    sentence = f"Created {created.name}."
    if not options.verified:
        sentence += f" An e-mail to {created.email} asks the user to confirm the address."
    if not password:
        sentence += f" To set a password: hubgate admin user reset-password {created.name}"
    return common.print_result(options, common.describe_user(created), sentence)


def _read_password() -> str:
    """Read a password without echo from a terminal, else one line from standard input. An argument would be visible in
    process lists and the shell's history.
    """
    if sys.stdin.isatty():
        return check_password(getpass.getpass("Password: "))
    line = sys.stdin.buffer.readline(_LONGEST_LINE)
    try:
        password = line.decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        raise Unprocessable("The password on standard input is not UTF-8.") from None
    if not password:
        raise Unprocessable("The password on standard input is empty. Write it as one line.")
    if sys.stdin.buffer.read(1):
        raise Unprocessable("Standard input has more than one line. Write only the password to it.")
    return check_password(password)


def _list(options: argparse.Namespace) -> int:
    found = common.with_hub(options, lambda hub: operator_actions.every_user(hub.accounts))
    values = [common.describe_user(user) for user in found]
    cells = [[user.name, user.email, iso(user.created_at)[:10], _state(user)] for user in found]
    return common.print_rows(options, values, ["NAME", "E-MAIL", "CREATED", "STATE"], cells)


def _state(user: User) -> str:
    words = {
        "disabled": user.disabled_at is not None,
        "address not confirmed": user.email_verified_at is None,
        "operator": bool(user.operator),
    }
    return ", ".join(word for word, applies in words.items() if applies)


def _disable(options: argparse.Namespace) -> int:
    user = _change(options, operator_actions.disable)
    return common.print_result(
        options, common.describe_user(user), f"Disabled {user.name}. All sessions were ended, and tokens are rejected."
    )


def _enable(options: argparse.Namespace) -> int:
    user = _change(options, operator_actions.enable)
    return common.print_result(options, common.describe_user(user), f"Enabled {user.name}.")


def _verify(options: argparse.Namespace) -> int:
    user = _change(options, operator_actions.verify)
    return common.print_result(options, common.describe_user(user), f"{user.email} is verified.")


def _change(options: argparse.Namespace, change: Callable[[Accounts, User], Awaitable[None]]) -> User:
    """Change a user and return the changed user."""

    async def work(hub: Hub) -> User:
        await change(hub.accounts, await common.find_user(hub, options.name))
        return await common.find_user(hub, options.name)

    return common.with_hub(options, work)


def _reset_password(options: argparse.Namespace) -> int:
    async def work(hub: Hub) -> dict[str, str]:
        user, expires_at = await common.find_enabled_user(hub, options.name), hub.clock() + Purpose.RESET.lifetime
        link = await operator_actions.send_reset(hub.accounts, user)
        return {"name": user.name, "email": user.email, "link": link, "expiresAt": iso(expires_at)}

    reset = common.with_hub(options, work)
    return common.print_result(options, reset, f"Mailed to {reset['email']}, valid for an hour: {reset['link']}")


def _delete(options: argparse.Namespace) -> int:
    async def work(hub: Hub) -> User:
        user = await common.find_user(hub, options.name)
        await own_account.delete(hub.accounts, user, SYSTEM)
        return user

    user = common.with_hub(options, work)
    return common.print_result(options, {"deleted": user.name, "id": user.id}, f"Deleted {user.name}.")


def _invite(options: argparse.Namespace) -> int:
    async def work(hub: Hub) -> dict[str, str]:
        expires_at = hub.clock() + invitations.LIFETIME
        link = await invitations.invite_to_hub(hub.accounts, options.email)
        return {"email": options.email, "link": link, "expiresAt": iso(expires_at)}

    invitation = common.with_hub(options, work)
    return common.print_result(
        options, invitation, f"Mailed to {invitation['email']}, valid for seven days: {invitation['link']}"
    )
