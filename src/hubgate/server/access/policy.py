"""The judgement. Pure: the same three values always give the same decision.

Order: what anyone may read, what must stay hidden, the fence of an exchanged token, the kind of credential, the
role, the scope. Private things are hidden from those who may not know of them. A token that lacks a scope is refused
with the scopes that would help, except that reading a private thing without one looks like absence.
"""

from collections.abc import Iterable
from itertools import chain
from typing import NoReturn

from hubgate.server.access.actions import Action
from hubgate.server.access.decision import (
    ALLOWED,
    HIDDEN_COLLECTION,
    HIDDEN_COLLECTION_SIGN_IN,
    HIDDEN_REPO,
    HIDDEN_REPO_SIGN_IN,
    Decision,
    ask_to_sign_in,
    forbid,
    gated,
)
from hubgate.server.access.identity import Identity, Kind
from hubgate.server.access.resource import Account, Collection, Namespace, Organization, Post, Repo, Resource
from hubgate.server.access.rule import Credential, Rule
from hubgate.server.accounts.roles import Role, TokenRole
from hubgate.server.scopes import BUILT_IN

_SEE_REPO = Action.REPO_SEE.rule
_SEE_COLLECTION = Action.COLLECTION_READ.rule


def decide(identity: Identity, action: Action, resource: Resource) -> Decision:
    rule = action.rule
    if not isinstance(resource, rule.on):
        raise TypeError(f"{rule.name} is not judged on {type(resource).__name__}.")
    if isinstance(resource, Repo):
        return _on_repo(identity, rule, resource, wrote=False)
    if isinstance(resource, Post):
        wrote = identity.user_id is not None and identity.user_id == resource.author_id
        return _on_repo(identity, rule, resource.repo, wrote=wrote)
    if isinstance(resource, Collection):
        return _on_collection(identity, rule, resource)
    if isinstance(resource, (Account, Organization)):
        return _in_namespace(identity, rule, resource)
    return _on_hub(identity, rule)


def require(identity: Identity, action: Action, resource: Resource) -> None:
    """Return when allowed, otherwise raise what the edge answers."""
    decide(identity, action, resource).enforce()


def refuse_missing(identity: Identity, action: Action, stand_in: Repo | Collection) -> NoReturn:
    """Raise, for a thing that is not there, what a private one in that namespace would give this caller.

    Otherwise a token without read-repos could learn the names of private repos by trying to write to them.
    """
    if isinstance(stand_in, Repo):
        see, hidden = Action.REPO_SEE, _hidden_repo(identity)
    else:
        see, hidden = Action.COLLECTION_READ, _hidden_collection(identity)
    if not decide(identity, see, stand_in).allowed:
        require(identity, action, stand_in)
    raise hidden.error()


def _on_repo(identity: Identity, rule: Rule, repo: Repo, *, wrote: bool) -> Decision:
    gate = repo.gated and not repo.private and bool(rule.gate)
    if rule.public and not repo.private and not gate:
        return ALLOWED
    role = _standing(identity, repo.owner)
    if repo.private and role is None:
        return _hidden_repo(identity)
    if role is Role.CONTRIBUTOR and repo.creator_id == identity.user_id:
        role = Role.WRITE
    enough, see = rule.scopes, _SEE_REPO.scopes
    if identity.client_id is not None and identity.client_id == repo.creator_client:
        enough, see = enough + rule.created, see + _SEE_REPO.created
    if gate:
        return _at_gate(identity, rule, repo, role, enough)
    # What anyone may do to a public repo, or to their own posts there, needs no grant of its organization.
    anyone = not repo.private and (rule.role is None or (rule.author and wrote))
    held = identity.scopes if anyone else _scopes_over(identity, repo.owner)
    blind = repo.private and identity.is_app and held.isdisjoint(see)
    if blind and rule.read:
        return _hidden_repo(identity)
    refusal = _refusal(identity, rule, repo.owner, role, wrote=wrote)
    # A scope to act that is none to read, write-discussions, needs one to read beside it on a private repo.
    beside = see if blind and set(enough).isdisjoint(see) else ()
    return refusal or _with_scopes(identity, rule, held, enough, beside)


def _at_gate(identity: Identity, rule: Rule, repo: Repo, role: Role | None, enough: tuple[str, ...]) -> Decision:
    """Content of a public gated repo: the one thing beyond the public that an exchanged token reaches outside its
    fence, and then only where the user was let in individually.
    """
    let_in = repo.granted and identity.kind is not Kind.ANONYMOUS and not identity.lapsed
    if role is None and not let_in:
        return gated(repo.label, sign_in=identity.kind is Kind.ANONYMOUS)
    members = enough if role is not None else ()
    guests = rule.gate if let_in else ()
    held = _scopes_over(identity, repo.owner).intersection(members) | identity.scopes.intersection(guests)
    return _with_scopes(identity, rule, held, members + guests)


def _on_collection(identity: Identity, rule: Rule, collection: Collection) -> Decision:
    if rule.public and not collection.private:
        return ALLOWED
    role = _standing(identity, collection.owner)
    if collection.private:
        blind = identity.is_app and _scopes_over(identity, collection.owner).isdisjoint(_SEE_COLLECTION.scopes)
        if role is None or (blind and rule.read):
            return _hidden_collection(identity)
    refusal = _refusal(identity, rule, collection.owner, role)
    return refusal or _with_scopes(identity, rule, _scopes_over(identity, collection.owner), rule.scopes)


def _in_namespace(identity: Identity, rule: Rule, namespace: Namespace) -> Decision:
    role = _standing(identity, namespace)
    if not rule.fenced and identity.user_id == namespace.id and not identity.lapsed:
        role = Role.ADMIN
    refusal = _refusal(identity, rule, namespace, role)
    return refusal or _with_scopes(identity, rule, _scopes_over(identity, namespace), rule.scopes)


def _on_hub(identity: Identity, rule: Rule) -> Decision:
    if rule.credential is Credential.NONE:
        return ALLOWED
    if identity.kind is Kind.ANONYMOUS:
        return ask_to_sign_in(rule.does)
    if identity.kind is not Kind.SESSION or not identity.operator:
        return forbid(f"Only an operator, signed in on the hub's pages, may {rule.does}.")
    return ALLOWED


def _standing(identity: Identity, owner: Namespace) -> Role | None:
    """The caller's role over what `owner` has, as far as the credential reaches."""
    if isinstance(owner, Organization):
        return identity.role_in(owner.id)
    return Role.ADMIN if identity.owns(owner.id) else None


def _scopes_over(identity: Identity, owner: Namespace) -> frozenset[str]:
    """The caller's scopes for what `owner` has."""
    return identity.scopes_in(owner.id) if isinstance(owner, Organization) else identity.scopes


def _refusal(
    identity: Identity, rule: Rule, owner: Namespace, role: Role | None, *, wrote: bool = False
) -> Decision | None:
    """All that can stand in the way but a scope."""
    if identity.kind is Kind.ANONYMOUS:
        return ask_to_sign_in(rule.does)
    if identity.kind is Kind.EXCHANGED and role is None:
        return forbid(f"This token works only inside its organization. It cannot be used to {rule.does} elsewhere.")
    if rule.credential is Credential.SESSION and identity.kind is not Kind.SESSION:
        return forbid(f"No token can be used to {rule.does}. Sign in on the hub's pages.")
    if rule.credential is Credential.PERSONAL and identity.is_app:
        return forbid(f"No app can {rule.does}. Use the hub's pages or a personal token.")
    if not (rule.author and wrote):
        if rule.author and rule.role is None:
            return forbid(f"Only its author may {rule.does}.")
        if rule.role is not None and (role is None or role < rule.role):
            return forbid(_role_wanted(identity, rule, owner, rule.role))
    if identity.token_role is TokenRole.READ and not rule.read:
        return forbid(f"This token can only read. Use a token with the write role to {rule.does}.")
    return None


def _role_wanted(identity: Identity, rule: Rule, owner: Namespace, wanted: Role) -> str:
    if isinstance(owner, Account):
        return f"Only its owner may {rule.does}."
    if owner.id in identity.memberships and identity.role_in(owner.id) is None:
        return f"This app was not given access to the organization, so it cannot {rule.does}. Authorize it again."
    return f"You need the {wanted.label} role in the organization to {rule.does}."


def _with_scopes(
    identity: Identity, rule: Rule, held: frozenset[str], enough: tuple[str, ...], beside: tuple[str, ...] = ()
) -> Decision:
    """Judge an app's token by the scopes `held` there: it needs one of `enough`, and lacks all of `beside`."""
    if not identity.is_app or rule.credential is Credential.ANY:
        return ALLOWED
    lacking = [_in_order(beside)] if beside else []
    # A rule that names no scope is disjoint from every token: it fails closed.
    if held.isdisjoint(enough):
        lacking.insert(0, _in_order(enough))
    if not lacking:
        return ALLOWED
    wanted = _in_order(chain.from_iterable(lacking))
    needs = ", and ".join(" or ".join(group) for group in lacking)
    if all(not identity.scopes.isdisjoint(group) for group in lacking):
        return forbid(
            f"This app was given access to the organization without the scope {needs}, so it cannot {rule.does}."
            " Authorize it again.",
            wanted,
        )
    return forbid(f"This token needs the scope {needs} to {rule.does}.", wanted)


def _in_order(names: Iterable[str]) -> tuple[str, ...]:
    wanted = set(names)
    return tuple(scope.name for scope in BUILT_IN if scope.name in wanted)


def _hidden_repo(identity: Identity) -> Decision:
    return HIDDEN_REPO_SIGN_IN if identity.kind is Kind.ANONYMOUS else HIDDEN_REPO


def _hidden_collection(identity: Identity) -> Decision:
    return HIDDEN_COLLECTION_SIGN_IN if identity.kind is Kind.ANONYMOUS else HIDDEN_COLLECTION
