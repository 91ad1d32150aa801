"""The limits of a fine-grained token: the scopes that it has everywhere, and its scopes in chosen places.

A place is the user's own account, an organization or a repo. A token has only what its user may do there: roles are
read at every request.
"""

from collections.abc import Iterable, Sequence

import msgspec
from msgspec.structs import replace

from hubgate.server.accounts.model import Membership, User
from hubgate.server.errors import FieldErrors
from hubgate.server.scopes import parse_scopes, unknown_scope_message

USER, ORG, REPO = "user", "org", "repo"
MAX_REPOS = 100

# Who the user is, and what anyone may do on public repos: neither belongs to one owner. `openid` has no effect here,
# because only apps get ID tokens.
EVERYWHERE_SCOPES = {
    "write-discussions": "Open discussions and pull requests, comment and react on all repos it can read",
    "gated-repos": "Read the gated public repos that you have access to",
    "email": "See your e-mail address",
    "profile": "See your name, avatar and website",
}
OWNER_SCOPES = {
    "manage-repos": "Create, edit, move and delete repos, including private ones",
    "write-repos": "Read and edit repos, including private ones",
    "contribute-repos": "Create repos, and use only the repos it created",
    "write-collections": "Read, create, edit and delete collections",
    "write-discussions": "Open discussions and pull requests, comment, react and close",
    "webhooks": "Create and edit webhooks, which decide where notifications are sent",
    "jobs": "Run jobs; may cost money",
    "inference-api": "Send inference requests; may cost money",
    "read-repos": "Read repos, including private ones",
    "read-collections": "Read collections, including private ones",
    "read-billing": "See whether a payment method is set up; no details",
}
REPO_SCOPES = {
    "manage-repos": "Edit, move and delete the repo",
    "write-repos": "Read and edit the repo",
    "write-discussions": "Open discussions and pull requests, comment, react and close",
    "read-repos": "Read the repo, also if it is private",
    "gated-repos": "Read the repo if it is gated and you have access",
}
SCOPES_OF_KIND = {USER: OWNER_SCOPES, ORG: OWNER_SCOPES, REPO: REPO_SCOPES}


class NewLimit(msgspec.Struct, frozen=True):
    """A place for a new token. `owner_id` is the owner of the repo; otherwise the target itself."""

    kind: str
    target_id: str
    owner_id: str
    scopes: frozenset[str]


class NewLimits(msgspec.Struct, frozen=True):
    everywhere: frozenset[str] = frozenset()
    places: tuple[NewLimit, ...] = ()


NO_LIMITS = NewLimits()


class TokenLimit(msgspec.Struct, frozen=True):
    """A place that a token reaches now. The fields are in the order of `limits_store.COLUMNS`."""

    token_id: str
    # "user", "org", or the type of a repo.
    type: str
    target_id: str
    name: str
    scopes: str

    @property
    def scope_names(self) -> tuple[str, ...]:
        return parse_scopes(self.scopes)

    @property
    def is_repo(self) -> bool:
        return self.type not in (USER, ORG)


def own_account(user: User, scopes: Iterable[str]) -> NewLimit:
    return NewLimit(USER, user.id, user.id, frozenset(scopes))


def organizations(memberships: Sequence[Membership], ids: Iterable[str], scopes: Iterable[str]) -> list[NewLimit]:
    """The limits for the user's organizations with these ids; other ids are ignored."""
    chosen = set(ids)
    found = [membership.organization.id for membership in memberships if membership.organization.id in chosen]
    return [NewLimit(ORG, org_id, org_id, frozenset(scopes)) for org_id in found]


def check_limits(limits: NewLimits) -> NewLimits:
    """Check the limits of a new token, drop places without scopes, and merge places that are named twice."""
    by_target: dict[str, NewLimit] = {}
    _check_scopes(limits.everywhere, EVERYWHERE_SCOPES)
    for place in limits.places:
        _check_scopes(place.scopes, SCOPES_OF_KIND[place.kind])
        if place.scopes:
            before = by_target.get(place.target_id, place)
            by_target[place.target_id] = replace(place, scopes=before.scopes | place.scopes)
    places = tuple(by_target.values())
    if not places and not limits.everywhere:
        raise FieldErrors({"scopes": "Choose at least one permission."})
    if sum(place.kind == REPO for place in places) > MAX_REPOS:
        raise FieldErrors({"repos": f"A token may have at most {MAX_REPOS} repos. Choose their owner instead."})
    return NewLimits(limits.everywhere, places)


def _check_scopes(names: Iterable[str], known: Iterable[str]) -> None:
    unknown = sorted(set(names).difference(known))
    if unknown:
        raise FieldErrors({"scopes": unknown_scope_message(unknown[0], known)})
