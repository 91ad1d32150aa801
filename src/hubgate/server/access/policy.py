"""The permission check, a pure function of identity, action and resource.

Order of checks: public reads, hidden resources, the fence of an exchanged token, the kind of credential, the role, the
scope. Private resources are hidden from callers without access. A token without the required scope gets an error that
names the scopes that would help, except that reading a private resource without a read scope looks like absence.
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
from hubgate.server.access.identity import CredentialKind, Identity
from hubgate.server.access.resource import Account, Collection, Namespace, Organization, Post, Repo, Resource
from hubgate.server.access.rule import Credential, Rule
from hubgate.server.accounts.roles import Role, TokenRole
from hubgate.server.scopes import BUILT_IN_SCOPES

_SEE_REPO = Action.REPO_SEE.rule
_SEE_COLLECTION = Action.COLLECTION_READ.rule


def decide(identity: Identity, action: Action, resource: Resource) -> Decision:
    rule = action.rule
    if not isinstance(resource, rule.on):
        raise TypeError(f"{rule.name} is not judged on {type(resource).__name__}.")
    if isinstance(resource, Repo):
        return _on_repo(identity, rule, resource, is_author=False)
    if isinstance(resource, Post):
        is_author = identity.user_id is not None and identity.user_id == resource.author_id
        return _on_repo(identity, rule, resource.repo, is_author=is_author)
    if isinstance(resource, Collection):
        return _on_collection(identity, rule, resource)
    if isinstance(resource, (Account, Organization)):
        return _in_namespace(identity, rule, resource)
    return _on_hub(identity, rule)


def require(identity: Identity, action: Action, resource: Resource) -> None:
    """Return if allowed, otherwise raise the error."""
    decide(identity, action, resource).enforce()


def refuse_missing(identity: Identity, action: Action, stand_in: Repo | Collection) -> NoReturn:
    """Raise, for a missing resource, the error that a private resource in that namespace would give this caller.

    Otherwise a token without read-repos could discover the names of private repos by trying to write to them.
    """
    if isinstance(stand_in, Repo):
        see, hidden = Action.REPO_SEE, _hidden_repo(identity)
    else:
        see, hidden = Action.COLLECTION_READ, _hidden_collection(identity)
    if not decide(identity, see, stand_in).allowed:
        require(identity, action, stand_in)
    raise hidden.error()


def _on_repo(identity: Identity, rule: Rule, repo: Repo, *, is_author: bool) -> Decision:
    gate = repo.gated and not repo.private and bool(rule.gate)
    if rule.public and not repo.private and not gate:
        return ALLOWED
    role = _role_on(identity, repo.owner)
    if repo.private and role is None:
        return _hidden_repo(identity)
    if role is Role.CONTRIBUTOR and repo.creator_id == identity.user_id:
        role = Role.WRITE
    sufficient, see = rule.scopes, _SEE_REPO.scopes
    if identity.client_id is not None and identity.client_id == repo.creator_client:
        sufficient, see = sufficient + rule.created, see + _SEE_REPO.created
    if gate:
        return _at_gate(identity, rule, repo, role, sufficient)
    # Actions open to anyone on a public repo, or to authors on their posts there, need no grant of the organization.
    anyone = not repo.private and (rule.role is None or (rule.author and is_author))
    scopes = identity.scopes if anyone else _scopes_on(identity, repo.owner)
    cannot_read = repo.private and identity.is_app and scopes.isdisjoint(see)
    if cannot_read and rule.read:
        return _hidden_repo(identity)
    refusal = _refusal(identity, rule, repo.owner, role, is_author=is_author)
    # On a private repo, a scope that does not include reading (write-discussions) also requires a read scope.
    missing_read = see if cannot_read and set(sufficient).isdisjoint(see) else ()
    return refusal or _check_scopes(identity, rule, scopes, sufficient, missing_read)


def _at_gate(identity: Identity, rule: Rule, repo: Repo, role: Role | None, sufficient: tuple[str, ...]) -> Decision:
    """Decide on the content of a public gated repo: the only non-public resource that an exchanged token reaches
    outside its fence, and only if the user was granted access individually.
    """
    has_access = repo.granted and identity.kind is not CredentialKind.ANONYMOUS and not identity.lapsed
    if role is None and not has_access:
        return gated(repo.label, sign_in=identity.kind is CredentialKind.ANONYMOUS)
    members = sufficient if role is not None else ()
    guests = rule.gate if has_access else ()
    scopes = _scopes_on(identity, repo.owner).intersection(members) | identity.scopes.intersection(guests)
    return _check_scopes(identity, rule, scopes, members + guests)


def _on_collection(identity: Identity, rule: Rule, collection: Collection) -> Decision:
    if rule.public and not collection.private:
        return ALLOWED
    role = _role_on(identity, collection.owner)
    if collection.private:
        cannot_read = identity.is_app and _scopes_on(identity, collection.owner).isdisjoint(_SEE_COLLECTION.scopes)
        if role is None or (cannot_read and rule.read):
            return _hidden_collection(identity)
    refusal = _refusal(identity, rule, collection.owner, role)
    return refusal or _check_scopes(identity, rule, _scopes_on(identity, collection.owner), rule.scopes)


def _in_namespace(identity: Identity, rule: Rule, namespace: Namespace) -> Decision:
    role = _role_on(identity, namespace)
    if not rule.fenced and identity.user_id == namespace.id and not identity.lapsed:
        role = Role.ADMIN
    refusal = _refusal(identity, rule, namespace, role)
    return refusal or _check_scopes(identity, rule, _scopes_on(identity, namespace), rule.scopes)


def _on_hub(identity: Identity, rule: Rule) -> Decision:
    if rule.credential is Credential.NONE:
        return ALLOWED
    if identity.kind is CredentialKind.ANONYMOUS:
        return ask_to_sign_in(rule.does)
    if identity.kind is not CredentialKind.SESSION or not identity.operator:
        return forbid(f"Only an operator, signed in on the hub's pages, may {rule.does}.")
    return ALLOWED


def _role_on(identity: Identity, owner: Namespace) -> Role | None:
    """The caller's role on resources of `owner`, within the limits of the credential."""
    if isinstance(owner, Organization):
        return identity.role_in(owner.id)
    return Role.ADMIN if identity.owns(owner.id) else None


def _scopes_on(identity: Identity, owner: Namespace) -> frozenset[str]:
    """The caller's scopes on resources of `owner`."""
    return identity.scopes_in(owner.id) if isinstance(owner, Organization) else identity.scopes


def _refusal(
    identity: Identity, rule: Rule, owner: Namespace, role: Role | None, *, is_author: bool = False
) -> Decision | None:
    """The error for any missing requirement except scopes; None if all are met."""
    if identity.kind is CredentialKind.ANONYMOUS:
        return ask_to_sign_in(rule.does)
    if identity.kind is CredentialKind.EXCHANGED and role is None:
        return forbid(f"This token works only inside its organization. It cannot be used to {rule.does} elsewhere.")
    if rule.credential is Credential.SESSION and identity.kind is not CredentialKind.SESSION:
        return forbid(f"No token can be used to {rule.does}. Sign in on the hub's pages.")
    if rule.credential is Credential.PERSONAL and identity.is_app:
        return forbid(f"No app can {rule.does}. Use the hub's pages or a personal token.")
    if not (rule.author and is_author):
        if rule.author and rule.role is None:
            return forbid(f"Only its author may {rule.does}.")
        if rule.role is not None and (role is None or role < rule.role):
            return forbid(_role_message(identity, rule, owner, rule.role))
    if identity.token_role is TokenRole.READ and not rule.read:
        return forbid(f"This token can only read. Use a token with the write role to {rule.does}.")
    return None


def _role_message(identity: Identity, rule: Rule, owner: Namespace, required: Role) -> str:
    if isinstance(owner, Account):
        return f"Only its owner may {rule.does}."
    if owner.id in identity.memberships and identity.role_in(owner.id) is None:
        return f"This app was not granted access to the organization, so it cannot {rule.does}. Authorize it again."
    return f"You need the {required.label} role in the organization to {rule.does}."


def _check_scopes(
    identity: Identity,
    rule: Rule,
    scopes: frozenset[str],
    sufficient: tuple[str, ...],
    missing_read: tuple[str, ...] = (),
) -> Decision:
    """Check the scopes of an app's token: `scopes` must contain one of `sufficient`. `missing_read` lists read
    scopes that the token needs and lacks.
    """
    if not identity.is_app or rule.credential is Credential.ANY:
        return ALLOWED
    lacking = [_in_order(missing_read)] if missing_read else []
    # A rule without scopes is disjoint from every token: it fails closed.
    if scopes.isdisjoint(sufficient):
        lacking.insert(0, _in_order(sufficient))
    if not lacking:
        return ALLOWED
    required = _in_order(chain.from_iterable(lacking))
    needs = ", and ".join(" or ".join(group) for group in lacking)
    if all(not identity.scopes.isdisjoint(group) for group in lacking):
        return forbid(
            f"This app was granted access to the organization without the scope {needs}, so it cannot {rule.does}."
            " Authorize it again.",
            required,
        )
    return forbid(f"This token needs the scope {needs} to {rule.does}.", required)


def _in_order(names: Iterable[str]) -> tuple[str, ...]:
    required = set(names)
    return tuple(scope.name for scope in BUILT_IN_SCOPES if scope.name in required)


def _hidden_repo(identity: Identity) -> Decision:
    return HIDDEN_REPO_SIGN_IN if identity.kind is CredentialKind.ANONYMOUS else HIDDEN_REPO


def _hidden_collection(identity: Identity) -> Decision:
    return HIDDEN_COLLECTION_SIGN_IN if identity.kind is CredentialKind.ANONYMOUS else HIDDEN_COLLECTION
