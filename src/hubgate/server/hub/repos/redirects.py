"""Former names that lead to a repo (O69). A name belongs to its namespace: it leads out of it only for as long as an
admin of the organization, or the user whose name it is, allows that, and only to the namespace they agreed to.
"""

from collections.abc import Mapping

from hubgate.server.accounts.organizations import store as organizations
from hubgate.server.accounts.organizations.changing import begin_by_id_as_admin
from hubgate.server.accounts.roles import Role
from hubgate.server.audit.model import SYSTEM, Actor, Kind
from hubgate.server.audit.record import record
from hubgate.server.errors import Forbidden, NotFound
from hubgate.server.hub.context import Repos
from hubgate.server.hub.repos import store
from hubgate.server.hub.repos.model import Owner, Redirect, Repo
from hubgate.server.paging import Page, PageRequest, page_of
from hubgate.server.storage.database import Tx

CURSOR = (str, str)


async def of_owner(repos: Repos, owner_id: str, asked: PageRequest) -> Page[Redirect]:
    """Every redirect from a name in this namespace, by name."""
    after = asked.after or ("", "")
    rows = await repos.db.read_long(
        lambda tx: store.redirects_of(tx, owner_id, str(after[0]), str(after[1]), asked.fetch)
    )
    return page_of(rows, asked, lambda found: (found.key, found.type))


async def unlink(repos: Repos, owner: Owner, repo_type: str, name: str, actor: Actor) -> None:
    """The name leads nowhere from now on, and is free for a new repo in its namespace. By an admin or the user."""

    async def unit(tx: Tx) -> None:
        if owner.kind == "org":
            await begin_by_id_as_admin(tx, owner.id, actor)
        await _unlinked(tx, repos, owner, repo_type, name, actor)

    await repos.db.write(unit)


async def unlink_by_operator(repos: Repos, owner: Owner, repo_type: str, name: str) -> None:
    """The same for a namespace whose owner may be gone."""
    await repos.db.write(lambda tx: _unlinked(tx, repos, owner, repo_type, name, SYSTEM))


async def _unlinked(tx: Tx, repos: Repos, owner: Owner, repo_type: str, name: str, actor: Actor) -> None:
    now = repos.clock()
    repo_id = await store.drop_redirect(tx, owner.id, repo_type, name)
    if repo_id is None:
        raise NotFound(f"There is no redirect from the {repo_type[:20]} {owner.name}/{name[:120]}.")
    await repos.on_unlinked(tx, repo_id)
    if owner.kind == "org":
        await _record(
            tx, owner, Kind.REPO_UNLINK_REDIRECT, f"unlinked {owner.name}/{name.lower()}", name, repo_type, actor, now
        )


async def settle_names(tx: Tx, repo: Repo, to: Owner, name: str, *, leave: bool, actor: Actor, now: int) -> None:
    """In the unit that moves `repo` to a name in another namespace: which of its other names go on leading to it.

    Those in a namespace that the actor speaks for, if a redirect was asked for. All others are free from now on, also
    those in a third namespace: its admin agreed to a redirect to where the repo was, not to where it goes.
    """
    if leave and not await _speaks_for(tx, repo.owner, actor):
        raise Forbidden(f"You are no longer an admin of {repo.owner_name}.")
    for owner, keys in (await _other_places(tx, repo, to)).items():
        if leave and await _speaks_for(tx, owner, actor):
            await store.allow_redirects(tx, repo.id, owner.id, actor.user_id)
            text, kind, by = f"allowed {{name}} to redirect to {to.name}/{name}", Kind.REPO_ALLOW_REDIRECT, actor
        else:
            await store.drop_names(tx, repo.id, owner.id)
            if owner.id == repo.owner_id:
                # The entry of the move says so.
                continue
            # Who moved it, and where to, is not for the third namespace to know.
            text, kind, by = "unlinked {name}: its repo was moved again", Kind.REPO_UNLINK_REDIRECT, SYSTEM
        if owner.kind == "org" and owner.name:
            for key in keys:
                said = text.format(name=f"{owner.name}/{key}")
                await _record(tx, owner, kind, said, key, repo.type, by, now)


async def _other_places(tx: Tx, repo: Repo, to: Owner) -> Mapping[Owner, list[str]]:
    places: dict[Owner, list[str]] = {}
    for owner, key in await store.names_of(tx, repo.id):
        if owner.id != to.id:
            places.setdefault(owner, []).append(key)
    return places


async def _speaks_for(tx: Tx, owner: Owner, actor: Actor) -> bool:
    """As of now: whoever was demoted while the request waited does not."""
    if actor.user_id is None or owner.kind == "user":
        return owner.id == actor.user_id
    return await organizations.role_of(tx, owner.id, actor.user_id) is Role.ADMIN


async def _record(
    tx: Tx, owner: Owner, kind: Kind, text: str, name: str, repo_type: str, actor: Actor, now: int
) -> None:
    data = {"redirect": f"{owner.name}/{name.lower()}", "type": repo_type}
    await record(tx, owner.id, kind, text, actor, now, data)
