"""Which private repos a caller may see, as far as a list can ask: the same judgement as `policy.decide` gives for each,
in a form a statement can use. A test holds the two against each other.
"""

from dataclasses import dataclass

from hubgate.server.access.actions import Action
from hubgate.server.access.identity import Identity

_SEE = Action.REPO_SEE.rule


@dataclass(frozen=True)
class Sight:
    """Private repos of `owners`; where `made_by` is set, only those made through that app."""

    owners: tuple[str, ...] = ()
    made_by: str | None = None


NOTHING_PRIVATE = Sight()


def sight_of(identity: Identity) -> Sight:
    owners = [org_id for org_id in identity.memberships if identity.role_in(org_id) is not None]
    if identity.user_id is not None and identity.owns(identity.user_id):
        owners.append(identity.user_id)
    if not identity.is_app or not identity.scopes.isdisjoint(_SEE.scopes):
        return Sight(tuple(owners))
    if not identity.scopes.isdisjoint(_SEE.created):
        return Sight(tuple(owners), identity.client_id)
    return NOTHING_PRIVATE
