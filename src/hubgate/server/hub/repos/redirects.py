"""Former names that redirect to a repo (attack O69). A name belongs to its namespace: a redirect to another namespace
exists only as long as an admin of the organization, or the user who owns the namespace, allows it, and only to the
namespace they agreed to.
"""

from collections.abc import Mapping, Sequence

from hubgate.server.accounts.organizations import store as org_store
from hubgate.server.accounts.organizations.locks import lock_organization_by_id_as_admin
from hubgate.server.accounts.roles import Role
from hubgate.server.audit.model import SYSTEM, Actor, EntryType
from hubgate.server.audit.record import record
from hubgate.server.errors import Forbidden, NotFound
from hubgate.server.hub.context import OnUnlinked, Repos
from hubgate.server.hub.repos import store
from hubgate.server.hub.repos.model import Redirect, Repo, RepoOwner
from hubgate.server.paging import Page, PageRequest, page_of
from hubgate.server.storage.database import Tx

CURSOR = (str, str)


async def of_owner(repos: Repos, owner_id: str, page_request: PageRequest) -> Page[Redirect]:
    """A page of the redirects in this namespace, by name."""
    after = page_request.after or ("", "")
    rows = await repos.db.read_long(
        lambda tx: store.redirects_of(tx, owner_id, str(after[0]), str(after[1]), page_request.fetch_limit)
    )
    return page_of(rows, page_request, lambda found: (found.key, found.type))


async def unlink(repos: Repos, owner: RepoOwner, repo_type: str, name: str, actor: Actor) -> None:
    """Delete a redirect, which frees its name for a new repo. The actor must be an admin of the organization, or the
    user who owns the namespace.
    """

    async def unit(tx: Tx) -> None:
        if owner.kind == "org":
            await lock_organization_by_id_as_admin(tx, owner.id, actor)
        await _unlink(tx, repos, owner, repo_type, name, actor)

    await repos.db.write(unit)


async def unlink_by_operator(repos: Repos, owner: RepoOwner, repo_type: str, name: str) -> None:
    """Delete a redirect in a namespace whose owner may be deleted."""
    await repos.db.write(lambda tx: _unlink(tx, repos, owner, repo_type, name, SYSTEM))


async def _unlink(tx: Tx, repos: Repos, owner: RepoOwner, repo_type: str, name: str, actor: Actor) -> None:
    now = repos.clock()
    repo_id = await store.drop_redirect(tx, owner.id, repo_type, name)
    if repo_id is None:
        raise NotFound(f"There is no redirect from the {repo_type[:20]} {owner.name}/{name[:120]}.")
    await repos.on_unlinked(tx, repo_id)
    if owner.kind == "org":
        await _record(
            tx,
            owner,
            EntryType.REPO_UNLINK_REDIRECT,
            f"unlinked {owner.name}/{name.lower()}",
            name,
            repo_type,
            actor,
            now,
        )


async def unlink_to_others(
    on_unlinked: OnUnlinked, tx: Tx, owner_ids: Sequence[str], actor: Actor, reason: str, now: int
) -> int:
    """Delete the redirects from names of these owners to repos of other owners; return their number."""
    unlinked = [redirect for owner_id in owner_ids for redirect in await store.drop_redirects_to_others(tx, owner_id)]
    for owner, repo_type, key, repo_id in unlinked:
        await on_unlinked(tx, repo_id)
        if owner.kind == "org":
            text = f"unlinked {owner.name}/{key}"
            await _record(tx, owner, EntryType.REPO_UNLINK_REDIRECT, text, key, repo_type, actor, now, reason=reason)
    return len(unlinked)


async def update_redirects(
    tx: Tx, repo: Repo, to: RepoOwner, name: str, *, leave: bool, actor: Actor, now: int
) -> None:
    """Allow or delete the redirects of a repo, in the transaction that moves it to another namespace.

    With `leave`, names in namespaces that the actor may decide for still redirect to the repo. All other names become
    free, including those in a third namespace: its admin agreed to a redirect to the previous namespace, not to the
    new one.
    """
    if leave and not await _may_decide_for(tx, repo.owner, actor):
        raise Forbidden(f"You are no longer an admin of {repo.owner_name}.")
    for owner, keys in (await _names_elsewhere(tx, repo, to)).items():
        if leave and await _may_decide_for(tx, owner, actor):
            await store.allow_redirects(tx, repo.id, owner.id, actor.user_id)
            text, kind, by = f"allowed {{name}} to redirect to {to.name}/{name}", EntryType.REPO_ALLOW_REDIRECT, actor
        else:
            await store.drop_names(tx, repo.id, owner.id)
            if owner.id == repo.owner_id:
                # The audit entry of the move covers this.
                continue
            # The third namespace must not learn who moved the repo, or where.
            text, kind, by = "unlinked {name}: its repo was moved again", EntryType.REPO_UNLINK_REDIRECT, SYSTEM
        if owner.kind == "org" and owner.name:
            for key in keys:
                text_of_name = text.format(name=f"{owner.name}/{key}")
                await _record(tx, owner, kind, text_of_name, key, repo.type, by, now)


async def _names_elsewhere(tx: Tx, repo: Repo, to: RepoOwner) -> Mapping[RepoOwner, list[str]]:
    names: dict[RepoOwner, list[str]] = {}
    for owner, key in await store.names_of(tx, repo.id):
        if owner.id != to.id:
            names.setdefault(owner, []).append(key)
    return names


async def _may_decide_for(tx: Tx, owner: RepoOwner, actor: Actor) -> bool:
    """Whether the actor may currently decide for a namespace: an admin may be demoted while the request waits."""
    if actor.user_id is None or owner.kind == "user":
        return owner.id == actor.user_id
    return await org_store.role_of(tx, owner.id, actor.user_id) is Role.ADMIN


async def _record(
    tx: Tx, owner: RepoOwner, kind: EntryType, text: str, name: str, repo_type: str, actor: Actor, now: int, **more: str
) -> None:
    data = {"redirect": f"{owner.name}/{name.lower()}", "type": repo_type, **more}
    await record(tx, owner.id, kind, text, actor, now, data)
