"""Create, list and delete repos."""

import argparse

from hubgate.cli.user import common
from hubgate.client import Hub
from hubgate.client.addresses import REPO_TYPES
from hubgate.client.responses import sanitized


def configure(parser: argparse.ArgumentParser) -> None:
    commands = common.group(parser)
    example = "  hubgate repos create vision --private\n  hubgate repos create acme/rows --type dataset"
    create = common.add(commands, "create", "create a repo", _create, example)
    create.add_argument("name", metavar="NAME", help="namespace/name, or a name in your own namespace")
    common.add_type(create)
    create.add_argument("--private", action="store_true", help="visible only to users with access")
    create.add_argument("--sdk", help="the SDK of a space: python, gradio, docker or static")
    example = "  hubgate repos list\n  hubgate repos list --owner acme --type dataset --json"
    listed = common.add(commands, "list", "list repos, by default your own", _list, example)
    listed.add_argument("--owner", metavar="O", help="a user or organization")
    listed.add_argument("--type", choices=REPO_TYPES, help="only repos of this type")
    delete = common.add(commands, "delete", "delete a repo permanently", _delete, "  hubgate repos delete acme/vision")
    delete.add_argument("name", metavar="NAME", help="namespace/name, or a name in your own namespace")
    common.add_type(delete)
    delete.add_argument("--yes", action="store_true", help="do not ask for confirmation")


def run(options: argparse.Namespace) -> int:
    return common.perform(options)


def _create(options: argparse.Namespace, hub: Hub) -> int:
    created = hub.create_repo(options.name, type=options.type, private=options.private, sdk=options.sdk)
    return common.print_result(options, created, f"✓ {sanitized(created.url)}")


def _list(options: argparse.Namespace, hub: Hub) -> int:
    owner = options.owner or hub.whoami().name
    kinds = [options.type] if options.type else REPO_TYPES
    found = [repo for kind in kinds for repo in hub.list_repos(type=kind, owner=owner)]
    if not found and not options.json:
        print("No repos. Try: hubgate repos create --help")
        return 0
    rows = [
        [sanitized(repo.id, 200), repo.type, "private" if repo.private else "public", common.age(repo.last_modified)]
        for repo in found
    ]
    return common.print_rows(options, found, ["NAME", "TYPE", "VISIBILITY", "CHANGED"], rows)


def _delete(options: argparse.Namespace, hub: Hub) -> int:
    name = common.named_repo(hub, options.name)
    common.confirm(options, f"This deletes {name} with its files and discussions permanently.")
    hub.delete_repo(name, type=options.type)
    return common.print_result(options, {"deleted": name}, f"✓ Deleted {name}.")
