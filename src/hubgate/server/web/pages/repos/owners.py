"""Namespaces in which a user may create a repo: the user's own, and organizations where the role allows it."""

from hubgate.server.access.actions import Action
from hubgate.server.accounts.model import Person
from hubgate.server.hub.repos.model import Repo


def owners_for(person: Person) -> list[tuple[str, str]]:
    """Choices as (name, label)."""
    required_role = Action.REPO_CREATE.rule.role
    names = [person.user.name]
    names += [
        found.organization.name for found in person.memberships if required_role is None or found.role >= required_role
    ]
    return [(name, name) for name in names]


def owners_with(person: Person, repo: Repo) -> list[tuple[str, str]]:
    """The same choices, with the repo's present owner first."""
    others = [pair for pair in owners_for(person) if pair[0] != repo.owner_name]
    return [(repo.owner_name, repo.owner_name), *others]
