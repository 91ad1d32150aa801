"""Which private repos a caller may see, as far as a list can ask: the same judgement as `policy.decide` gives for each,
in a form a statement can use. A test holds the two against each other.
"""

from dataclasses import dataclass

from hubgate.server.access.actions import Action
from hubgate.server.access.identity import Identity

_SEE = Action.REPO_SEE.rule


@dataclass(frozen=True)
class Sight:
    """Private repos of `owners`; of `creators` only those created through the app `client_id`."""

    owners: tuple[str, ...] = ()
    creators: tuple[str, ...] = ()
    client_id: str | None = None


def sight_of(identity: Identity) -> Sight:
    scopes = {org: identity.scopes_in(org) for org in identity.memberships if identity.role_in(org) is not None}
    if identity.user_id is not None and identity.owns(identity.user_id):
        scopes[identity.user_id] = identity.scopes
    if not identity.is_app:
        return Sight(tuple(scopes))
    owners = tuple(owner for owner, held in scopes.items() if not held.isdisjoint(_SEE.scopes))
    creators = tuple(
        owner for owner, held in scopes.items() if owner not in owners and not held.isdisjoint(_SEE.created)
    )
    return Sight(owners, creators, identity.client_id)
