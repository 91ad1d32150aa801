"""`hubgate admin redirect list | unlink`: former names of repos that still redirect to them."""

import argparse
import sys
from typing import Any

from hubgate.cli.admin import common
from hubgate.server.clock import iso_or_none
from hubgate.server.errors import NotFound, Unprocessable
from hubgate.server.hub.repos import redirects, store
from hubgate.server.hub.repos.model import Redirect, RepoOwner, RepoType
from hubgate.server.paging import PageRequest
from hubgate.server.resources import Hub

_TYPES = [kind.value for kind in RepoType]


def configure(subjects: Any) -> None:
    commands = common.group(subjects, "redirect", "former names of repos that redirect to them")
    listed = common.add(commands, "list", "list all redirects from names in a namespace", _list)
    listed.add_argument("name", metavar="NAMESPACE", help="a user or an organization, including deleted ones")
    unlink = common.add(commands, "unlink", "remove a redirect; a new repo may then use the name", _unlink)
    unlink.add_argument("name", metavar="NAMESPACE/REPO", help="the old name")
    unlink.add_argument("--type", choices=_TYPES, default=RepoType.MODEL.value)


def _list(options: argparse.Namespace) -> int:
    async def work(hub: Hub) -> list[dict[str, Any]]:
        owner = await _owner(hub, options.name)
        found = await redirects.of_owner(hub.repos, owner.id, PageRequest(sys.maxsize - 1))
        return [_describe(owner, each) for each in found.items]

    values = common.with_hub(options, work)
    cells = [
        [
            each["type"],
            each["name"],
            each["target"],
            each["allowedBy"] or ("unknown" if each["outside"] else "same owner"),
            (each["createdAt"] or "")[:10],
        ]
        for each in values
    ]
    return common.print_rows(options, values, ["TYPE", "NAME", "TARGET", "ALLOWED BY", "SINCE"], cells)


def _describe(owner: RepoOwner, found: Redirect) -> dict[str, Any]:
    return {
        "type": found.type,
        "name": f"{owner.name}/{found.key}",
        "target": found.repo.full_name,
        "outside": found.leads_to_other_namespace,
        "createdAt": iso_or_none(found.left_at),
        "allowedBy": found.allowed_by if found.leads_to_other_namespace else None,
    }


def _unlink(options: argparse.Namespace) -> int:
    namespace, slash, name = options.name.partition("/")
    if not slash or not name:
        raise Unprocessable("Name the redirect as NAMESPACE/REPO.")

    async def work(hub: Hub) -> dict[str, str]:
        await redirects.unlink_by_operator(hub.repos, await _owner(hub, namespace), options.type, name)
        return {"unlinked": options.name, "type": options.type}

    done = common.with_hub(options, work)
    return common.print_result(options, done, f"{options.name} no longer redirects. A new repo may use the name.")


async def _owner(hub: Hub, name: str) -> RepoOwner:
    found = await store.owner_named_even_if_deleted(hub.db, name)
    if found is None:
        raise NotFound(f"Namespace {name} not found.")
    return found
