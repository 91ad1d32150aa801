"""Where a new or a moved repo goes, and what that takes."""

from typing import NamedTuple

from hubgate.server.access.actions import Action
from hubgate.server.edge.routes import Check, Target
from hubgate.server.errors import Forbidden
from hubgate.server.hub.context import Repos
from hubgate.server.hub.repos import store
from hubgate.server.hub.repos.model import Owner, Repo


class Move(NamedTuple):
    """`owner` is None where the namespace does not exist."""

    repo: Repo
    owner: Owner | None
    namespace: str
    name: str

    @property
    def to(self) -> Owner:
        if self.owner is None:
            raise _no_namespace(self.namespace)
        return self.owner


async def move_target(repos: Repos, repo: Repo, namespace: str, name: str) -> Target[Move]:
    """Rejects nothing by itself: a destination that does not exist tells nobody that there is such a repo."""
    owner = await store.owner_named(repos.db, namespace)
    moves_out = owner is not None and owner.id != repo.owner_id
    also = ((Check(Action.REPO_CREATE, owner.namespace),),) if owner is not None and moves_out else ()
    return Target(Move(repo, owner, namespace, name), repo.judged(), also=also)


async def owner_for_repos(repos: Repos, namespace: str) -> Owner:
    owner = await store.owner_named(repos.db, namespace)
    if owner is None:
        raise _no_namespace(namespace)
    return owner


def _no_namespace(name: str) -> Forbidden:
    return Forbidden(f"There is no namespace {name[:60]} that you may create repos in.")
