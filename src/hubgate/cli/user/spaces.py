"""List, restart and pause Spaces, read their logs, set their secrets."""

import argparse
import getpass
import sys
import time

from hubgate.cli.user import common
from hubgate.client import ConnectionLost, Hub, HubFailure, HubgateError, NotFound, TimedOut, Unreachable
from hubgate.client.codec import encode
from hubgate.client.models import LogLine
from hubgate.client.responses import printable, sanitized

_LONGEST_VALUE = 64 * 1024
_PAUSES = (1, 2, 4, 8, 16, 30, 30, 30)


def configure(parser: argparse.ArgumentParser) -> None:
    commands = common.group(parser)
    listed = common.add(commands, "list", "list Spaces with their state", _list, "  hubgate spaces list --owner acme")
    listed.add_argument("--owner", metavar="O", help="a user or organization (default: you)")
    logs = common.add(
        commands, "logs", "print the log of a Space", _logs, "  hubgate spaces logs ada/listener --follow"
    )
    _add_id(logs)
    logs.add_argument("--build", action="store_true", help="the log of the latest build instead of the app's")
    logs.add_argument("--follow", action="store_true", help="also print new lines as they are written")
    restart = common.add(commands, "restart", "restart a Space", _restart, "  hubgate spaces restart ada/listener")
    _add_id(restart)
    restart.add_argument("--factory", action="store_true", help="also install the requirements again")
    pause = common.add(commands, "pause", "pause a Space", _pause, "  hubgate spaces pause ada/listener")
    _add_id(pause)
    example = "  hubgate spaces secrets ada/listener set WEBHOOK_SECRET < secret.txt"
    secrets = common.add(commands, "secrets", "set or delete a secret of a Space", _secrets, example)
    _add_id(secrets)
    secrets.add_argument("action", choices=("set", "delete"), help="set reads the value from standard input")
    secrets.add_argument("key", metavar="KEY", help="the name of the variable that the app reads")


def run(options: argparse.Namespace) -> int:
    return common.perform(options)


def _add_id(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help="namespace/name, or a name in your own namespace")


def _list(options: argparse.Namespace, hub: Hub) -> int:
    found = []
    for repo in hub.list_repos(type="space", owner=options.owner or hub.whoami().name):
        try:
            found.append((repo.id, hub.space_runtime(repo.id)))
        except NotFound:
            # Deleted since it was listed.
            continue
    if not found and not options.json:
        print("No Spaces. Try: hubgate repos create NAME --type space --sdk python")
        return 0
    rows = [[sanitized(name, 200), state.stage, sanitized(state.error_message or "", 200)] for name, state in found]
    value = [{"id": name, **encode(state)} for name, state in found]
    return common.print_rows(options, value, ["NAME", "STAGE", "MESSAGE"], rows)


def _restart(options: argparse.Namespace, hub: Hub) -> int:
    name = common.named_repo(hub, options.id)
    state = hub.restart_space(name, factory=options.factory)
    return common.print_result(options, state, f"✓ {name}: {state.stage}")


def _pause(options: argparse.Namespace, hub: Hub) -> int:
    name = common.named_repo(hub, options.id)
    state = hub.pause_space(name)
    return common.print_result(options, state, f"✓ {name}: {state.stage}")


def _secrets(options: argparse.Namespace, hub: Hub) -> int:
    name = common.named_repo(hub, options.id)
    if options.action == "delete":
        hub.delete_space_secret(name, options.key)
        return common.print_result(options, {"deleted": options.key}, f"✓ Deleted {options.key}.")
    hub.set_space_secret(name, options.key, _read_value())
    return common.print_result(
        options, {"set": options.key}, f"✓ Set {options.key}. An app that runs is started again with it."
    )


def _read_value() -> str:
    """Read a value from standard input, without its last line break. A terminal does not show it."""
    if sys.stdin.isatty():
        value = getpass.getpass("Value: ")
    else:
        try:
            value = sys.stdin.buffer.read(_LONGEST_VALUE + 1).decode().removesuffix("\n").removesuffix("\r")
        except UnicodeDecodeError:
            raise HubgateError("the value on standard input is not text.") from None
    if not value:
        raise HubgateError("the value on standard input is empty.")
    if len(value) > _LONGEST_VALUE:
        raise HubgateError("the value on standard input is too long.")
    return value


def _logs(options: argparse.Namespace, hub: Hub) -> int:
    name, last, failures = common.named_repo(hub, options.id), 0, 0

    def show(line: LogLine) -> None:
        nonlocal last, failures
        last, failures = line.n, 0
        print(common.compact(encode(line)) if options.json else printable(line.data).rstrip(), flush=True)

    while True:
        try:
            hub.read_space_log(name, show, build=options.build, follow=options.follow, after=last)
        except (ConnectionLost, TimedOut, Unreachable, HubFailure):
            if not options.follow or failures >= len(_PAUSES):
                raise
        if not options.follow or failures >= len(_PAUSES):
            return 0
        # The hub may be restarting.
        time.sleep(_PAUSES[failures])
        failures += 1
