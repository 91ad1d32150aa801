"""Which private repos and collections a caller may see, in a form that SQL statements can use for lists.

The result is the same as `policy.decide` for each of them; a test compares the two.
"""

from msgspec import Struct

from hubgate.server.access.actions import Action
from hubgate.server.access.identity import Identity

_SEE = Action.REPO_SEE.rule
_SEE_COLLECTION = Action.COLLECTION_READ.rule


class VisibleRepos(Struct, frozen=True):
    """The visible private repos: all repos of `owners`, the repos of `owners_of_created` that the app `client_id`
    created, and `repos` while their owners are among `owners_of_repos`.
    """

    owners: tuple[str, ...] = ()
    owners_of_created: tuple[str, ...] = ()
    client_id: str | None = None
    repos: tuple[str, ...] = ()
    owners_of_repos: tuple[str, ...] = ()


class VisibleCollections(Struct, frozen=True):
    """The visible private collections: all collections of `owners`."""

    owners: tuple[str, ...] = ()


def visible_repos(identity: Identity) -> VisibleRepos:
    scopes = _scopes_by_owner(identity)
    if not identity.is_scoped:
        return VisibleRepos(tuple(scopes))
    owners = tuple(owner for owner, granted in scopes.items() if not granted.isdisjoint(_SEE.scopes))
    owners_of_created = tuple(
        owner
        for owner, granted in scopes.items()
        if owner not in owners and not granted.isdisjoint(_SEE.creator_scopes)
    )
    repos = tuple(repo for repo, granted in identity.repos.items() if not granted.isdisjoint(_SEE.scopes))
    owners_of_repos = (identity.user_id or "", *identity.memberships) if repos else ()
    return VisibleRepos(owners, owners_of_created, identity.client_id, repos, owners_of_repos)


def visible_collections(identity: Identity) -> VisibleCollections:
    scopes = _scopes_by_owner(identity)
    if not identity.is_scoped:
        return VisibleCollections(tuple(scopes))
    readable = [owner for owner, granted in scopes.items() if not granted.isdisjoint(_SEE_COLLECTION.scopes)]
    return VisibleCollections(tuple(readable))


def _scopes_by_owner(identity: Identity) -> dict[str, frozenset[str]]:
    """The scopes of the credential in each namespace that it reaches."""
    scopes = {org: identity.scopes_in(org) for org in identity.memberships if identity.role_in(org) is not None}
    if identity.user_id is not None and identity.owns(identity.user_id):
        scopes[identity.user_id] = identity.scopes_of_user(identity.user_id)
    return scopes
