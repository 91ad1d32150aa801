"""Where a user may put a repo: under their own name, and under those of organizations where their role allows it."""

from hubgate.server.access.actions import Action
from hubgate.server.accounts.model import Person
from hubgate.server.hub.repos.model import Repo


def owners_for(person: Person) -> list[tuple[str, str]]:
    """To choose from: name and label."""
    least = Action.REPO_CREATE.rule.role
    names = [person.user.name]
    names += [found.organization.name for found in person.memberships if least is None or found.role >= least]
    return [(name, name) for name in names]


def owners_with(person: Person, repo: Repo) -> list[tuple[str, str]]:
    """The same, with where it is now."""
    others = [pair for pair in owners_for(person) if pair[0] != repo.owner_name]
    return [(repo.owner_name, repo.owner_name), *others]
