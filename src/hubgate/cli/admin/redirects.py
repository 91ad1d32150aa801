"""`hubgate admin redirect list | unlink`: former names of repos that still redirect to them."""

import argparse
import sys
from typing import Any

from hubgate.cli.admin import leaf
from hubgate.server.clock import iso_or_none
from hubgate.server.errors import NotFound, Unprocessable
from hubgate.server.hub.repos import redirects, store
from hubgate.server.hub.repos.model import Redirect, RepoOwner, RepoType
from hubgate.server.paging import PageRequest
from hubgate.server.resources import Hub

_TYPES = [kind.value for kind in RepoType]


def configure(subjects: Any) -> None:
    commands = leaf.group(subjects, "redirect", "former names of repos that still lead to them")
    listed = leaf.add(commands, "list", "every redirect from a name in a namespace", _list)
    listed.add_argument("name", metavar="NAMESPACE", help="a user or an organization, also one that was deleted")
    unlink = leaf.add(commands, "unlink", "end one; the name is then free for a new repo there", _unlink)
    unlink.add_argument("name", metavar="NAMESPACE/REPO", help="the old name")
    unlink.add_argument("--type", choices=_TYPES, default=RepoType.MODEL.value)


def _list(options: argparse.Namespace) -> int:
    async def work(hub: Hub) -> list[dict[str, Any]]:
        owner = await _owner(hub, options.name)
        found = await redirects.of_owner(hub.repos, owner.id, PageRequest(sys.maxsize - 1))
        return [_described(owner, each) for each in found.items]

    values = leaf.with_hub(options, work)
    cells = [
        [
            each["type"],
            each["name"],
            each["target"],
            each["allowedBy"] or ("not asked" if each["outside"] else "same owner"),
            (each["createdAt"] or "")[:10],
        ]
        for each in values
    ]
    return leaf.show(options, values, ["TYPE", "NAME", "LEADS TO", "ALLOWED BY", "SINCE"], cells)


def _described(owner: RepoOwner, found: Redirect) -> dict[str, Any]:
    return {
        "type": found.type,
        "name": f"{owner.name}/{found.key}",
        "target": found.repo.full_name,
        "outside": found.is_outside,
        "createdAt": iso_or_none(found.left_at),
        "allowedBy": found.allowed_by if found.is_outside else None,
    }


def _unlink(options: argparse.Namespace) -> int:
    namespace, slash, name = options.name.partition("/")
    if not slash or not name:
        raise Unprocessable("Name a redirect as NAMESPACE/REPO.")

    async def work(hub: Hub) -> dict[str, str]:
        await redirects.unlink_by_operator(hub.repos, await _owner(hub, namespace), options.type, name)
        return {"unlinked": options.name, "type": options.type}

    done = leaf.with_hub(options, work)
    return leaf.say(options, done, f"{options.name} leads nowhere now. The name is free for a new repo there.")


async def _owner(hub: Hub, name: str) -> RepoOwner:
    found = await store.owner_of_name(hub.db, name)
    if found is None:
        raise NotFound(f"Nobody has or had the name {name}.")
    return found
