"""Where a new or a moved repo goes, and what that takes."""

from typing import NamedTuple

from hubgate.server.access.actions import Action
from hubgate.server.access.identity import Identity
from hubgate.server.access.policy import decide
from hubgate.server.edge.routes import Check, Target
from hubgate.server.errors import Forbidden
from hubgate.server.hub.context import Repos
from hubgate.server.hub.repos import store
from hubgate.server.hub.repos.model import Owner, Repo


class Move(NamedTuple):
    """`owner` is None where the namespace does not exist. `leave_redirect` is about a move out of its namespace."""

    repo: Repo
    owner: Owner | None
    namespace: str
    name: str
    leave_redirect: bool

    @property
    def to(self) -> Owner:
        if self.owner is None:
            raise _no_namespace(self.namespace)
        return self.owner

    @property
    def redirects(self) -> bool:
        """Whether the old name will lead to the new one."""
        return self.leave_redirect or self.to.id == self.repo.owner_id


async def move_target(
    repos: Repos, identity: Identity, repo: Repo, namespace: str, name: str, leave_redirect: bool | None
) -> Target[Move]:
    """Rejects nothing by itself: a destination that does not exist tells nobody that there is such a repo.

    Existing clients cannot say whether to leave a redirect, and expect one: where that is None, those who may leave one
    do, and the others leave none.
    """
    owner = await store.owner_named(repos.db, namespace)
    leaving = Check(Action.REPO_LEAVE_REDIRECT, repo.owner.namespace)
    if owner is None or owner.id == repo.owner_id:
        return Target(Move(repo, owner, namespace, name, leave_redirect=False), repo.judged())
    also: tuple[tuple[Check, ...], ...] = ((Check(Action.REPO_CREATE, owner.namespace),),)
    if leave_redirect:
        also += ((leaving,),)
    elif leave_redirect is None:
        leave_redirect = decide(identity, *leaving).allowed
    return Target(Move(repo, owner, namespace, name, leave_redirect), repo.judged(), also=also)


async def owner_for_repos(repos: Repos, namespace: str) -> Owner:
    owner = await store.owner_named(repos.db, namespace)
    if owner is None:
        raise _no_namespace(namespace)
    return owner


def _no_namespace(name: str) -> Forbidden:
    return Forbidden(f"There is no namespace {name[:60]} that you may create repos in.")
