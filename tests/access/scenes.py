"""Callers and resources, built from the columns and conditions of the expectation tables."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from hubgate.server.access.actions import Action
from hubgate.server.access.identity import NO_GRANTS, Identity
from hubgate.server.access.resource import Account, Collection, Namespace, Organization, Post, Repo, Resource
from hubgate.server.accounts.roles import Role, TokenRole
from hubgate.server.accounts.tokens.limits import EVERYWHERE_SCOPES
from hubgate.server.scopes import SCOPE_NAMES

ME, SOMEONE = "user-me", "user-someone"
ACME, CLUB, FOREIGN = "org-acme", "org-club", "org-foreign"
APP, OTHER_APP = "app-asking", "app-other"
CHOSEN, LIMITED = "repo-chosen", "limited"

ROLES = {
    "read": Role.READ,
    "contributor": Role.CONTRIBUTOR,
    "made": Role.CONTRIBUTOR,
    "write": Role.WRITE,
    "admin": Role.ADMIN,
}

SCOPE_SETS: tuple[frozenset[str], ...] = tuple(
    {
        frozenset(),
        SCOPE_NAMES,
        *(frozenset({name}) for name in SCOPE_NAMES),
        *(SCOPE_NAMES - {name} for name in SCOPE_NAMES),
        *(frozenset({name, "write-discussions"}) for name in SCOPE_NAMES),
    }
)


# For fine-grained tokens, which have places besides: each scope alone, none and all.
LIMITED_SETS = (frozenset(), SCOPE_NAMES, *(frozenset({name}) for name in sorted(SCOPE_NAMES)))


@dataclass(frozen=True)
class Scene:
    """A resource, and the facts about it that the oracle uses."""

    resource: Resource
    column: str
    condition: str
    private: bool = False
    admitted: bool = False
    created_by_app: bool = False


@dataclass(frozen=True)
class Caller:
    """An identity and its limits relative to the resource: `inside` a granted organization, or not."""

    identity: Identity
    kind: str
    scopes: frozenset[str] = frozenset()
    inside: bool = False
    # Of a fine-grained token: the scopes that apply everywhere, and whether it reaches the own account, or the repo.
    everywhere: frozenset[str] = frozenset()
    own: bool = False
    chosen: bool = False


def callers(column: str) -> Iterator[Caller]:
    """All callers for a resource in that column.

    The user is always an admin of CLUB, so that a token for another organization is a powerful one.
    """
    if column == "nobody":
        yield Caller(Identity.anonymous(), "anonymous")
        return
    members = {ACME: ROLES.get(column, Role.ADMIN), CLUB: Role.ADMIN}
    yield Caller(Identity.session(ME, members), "session")
    yield Caller(Identity.session(ME, members, operator=True), "session")
    yield Caller(Identity.personal(ME, members, role=TokenRole.READ), "read token")
    yield Caller(Identity.personal(ME, members, role=TokenRole.WRITE), "write token")
    in_acme = column in ROLES
    for scopes in SCOPE_SETS:
        for org in (CLUB, ACME):
            token = Identity.consented(ME, members, client_id=APP, scopes=scopes, organizations={org: scopes})
            yield Caller(token, "consented", scopes, in_acme and org == ACME)
        for org in (ACME, CLUB):
            token = Identity.exchanged(ME, members, client_id=APP, scopes=scopes, organization=org)
            yield Caller(token, "exchanged", scopes, in_acme and org == ACME)
    for scopes in LIMITED_SETS:
        everywhere = scopes & EVERYWHERE_SCOPES.keys()
        yield Caller(_limited(members, everywhere), LIMITED, everywhere=everywhere)
        yield Caller(_limited(members, owners={ACME: scopes}), LIMITED, scopes, inside=in_acme)
        yield Caller(_limited(members, owners={ME: scopes, CLUB: scopes}), LIMITED, scopes, own=True)
        yield Caller(_limited(members, repos={CHOSEN: scopes}), LIMITED, scopes, chosen=True)
        for elsewhere in (frozenset({"jobs"}), frozenset({"read-repos"})):
            both = _limited(members, everywhere, {ACME: elsewhere})
            yield Caller(both, LIMITED, elsewhere, inside=in_acme, everywhere=everywhere)


def _limited(
    members: Mapping[str, Role],
    scopes: frozenset[str] = frozenset(),
    owners: Mapping[str, frozenset[str]] = NO_GRANTS,
    repos: Mapping[str, frozenset[str]] = NO_GRANTS,
) -> Identity:
    return Identity.fine_grained(ME, members, token_id="limited", scopes=scopes, owners=owners, repos=repos)


def scenes(action: Action, condition: str, column: str) -> Iterator[Scene]:
    """All resources that fit a cell of the table."""
    for owner in _owners(action, column):
        if Account in action.rule.on or Organization in action.rule.on:
            yield Scene(owner, column, condition)
        elif Collection in action.rule.on:
            private = condition == "private"
            yield Scene(Collection(owner, private=private), column, condition, private=private)
        else:
            yield from _on_repos(action, owner, column, condition)


def _owners(action: Action, column: str) -> tuple[Namespace, ...]:
    if column == "own":
        return (Account(ME),)
    if column in ROLES:
        return (Organization(ACME),)
    strangers = (Account(SOMEONE), Organization(FOREIGN))
    namespace = Account in action.rule.on or Organization in action.rule.on
    return tuple(owner for owner in strangers if not namespace or isinstance(owner, action.rule.on))


def _on_repos(action: Action, owner: Namespace, column: str, condition: str) -> Iterator[Scene]:
    visibility, _, author = condition.partition(",")
    gates = {"public": [(False, False)], "gated": [(True, False)], "admitted": [(True, True)]}
    private = visibility == "private"
    # Having created a repo matters for contributors only: a demoted or former member has no claim to it.
    creators = {"made": (ME,), "contributor": (SOMEONE, None)}.get(column, (ME, SOMEONE))
    for gated, granted in gates.get(visibility, [(False, False), (True, False), (True, True)]):
        if granted and column == "nobody" and visibility == "open":
            continue
        for creator, client in product(creators, (None, OTHER_APP, APP)):
            repo = Repo(owner, private, gated, granted, creator, client, id=CHOSEN)
            thing = repo if not author else Post(repo, ME if author == "mine" else SOMEONE)
            yield Scene(thing, column, condition, private, gated and granted and not private, client == APP)
