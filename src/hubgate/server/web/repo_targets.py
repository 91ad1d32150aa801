"""Destinations of new and moved repos, and the permissions they require."""

from typing import NamedTuple

from hubgate.server.access.actions import Action
from hubgate.server.access.identity import Identity
from hubgate.server.access.policy import decide
from hubgate.server.accounts.model import Person
from hubgate.server.edge.routes import Check, Target
from hubgate.server.errors import Forbidden
from hubgate.server.hub.context import Repos
from hubgate.server.hub.repos import store
from hubgate.server.hub.repos.model import Repo, RepoOwner


class RepoMove(NamedTuple):
    """A requested move. `owner` is None if the namespace does not exist. `leave_redirect` applies to a move out of the
    namespace.
    """

    repo: Repo
    owner: RepoOwner | None
    namespace: str
    name: str
    leave_redirect: bool

    @property
    def new_owner(self) -> RepoOwner:
        if self.owner is None:
            raise _no_namespace(self.namespace)
        return self.owner

    @property
    def redirects(self) -> bool:
        """Whether the old name will redirect to the new one."""
        return self.leave_redirect or self.new_owner.id == self.repo.owner_id


async def move_target(
    repos: Repos, identity: Identity, repo: Repo, namespace: str, name: str, leave_redirect: bool | None
) -> Target[RepoMove]:
    """Find the destination of a move and the permissions it requires. A missing destination is not rejected here: the
    error would reveal that the repo exists.

    Existing clients cannot set `leave_redirect` and expect a redirect: None means a redirect if the caller may leave
    one.
    """
    owner = await store.owner_named(repos.db, namespace)
    redirect_check = Check(Action.REPO_LEAVE_REDIRECT, repo.owner.namespace)
    if owner is None or owner.id == repo.owner_id:
        return Target(RepoMove(repo, owner, namespace, name, leave_redirect=False), repo.as_resource())
    further_checks: tuple[tuple[Check, ...], ...] = ((Check(Action.REPO_CREATE, owner.namespace),),)
    if leave_redirect:
        further_checks += ((redirect_check,),)
    elif leave_redirect is None:
        leave_redirect = decide(identity, *redirect_check).allowed
    return Target(
        RepoMove(repo, owner, namespace, name, leave_redirect), repo.as_resource(), further_checks=further_checks
    )


async def namespace_owner(repos: Repos, namespace: str) -> RepoOwner:
    owner = await store.owner_named(repos.db, namespace)
    if owner is None:
        raise _no_namespace(namespace)
    return owner


def _no_namespace(name: str) -> Forbidden:
    return Forbidden(f"You may not create repos in the namespace {name[:60]}, or it does not exist.")


def namespace_choices(person: Person) -> list[tuple[str, str]]:
    """Return the namespaces in which a user may create repos, as choices (name, label) of a form."""
    required_role = Action.REPO_CREATE.rule.role
    names = [person.user.name]
    names += [
        found.organization.name for found in person.memberships if required_role is None or found.role >= required_role
    ]
    return [(name, name) for name in names]


def namespace_choices_for_move(person: Person, repo: Repo) -> list[tuple[str, str]]:
    """Return the namespaces to which a user may move the repo, its current owner first, as choices of a form."""
    others = [pair for pair in namespace_choices(person) if pair[0] != repo.owner_name]
    return [(repo.owner_name, repo.owner_name), *others]
