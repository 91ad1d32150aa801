"""The permission check, a pure function of identity, action and resource.

Order of checks: public reads, hidden resources, the fence of an exchanged token, the kind of credential, the role, the
scope. Private resources are hidden from callers without access. A token without the required scope gets an error that
names the scopes that would help; without a read scope, a private resource is reported as not found.
"""

from functools import cache
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
    forbid_gated,
)
from hubgate.server.access.identity import NO_SCOPES, CredentialKind, Identity
from hubgate.server.access.resource import Account, Collection, Namespace, Organization, Post, Repo, Resource
from hubgate.server.access.rule import RequiredCredential, Rule
from hubgate.server.accounts.roles import Role, TokenRole
from hubgate.server.scopes import BUILT_IN_SCOPES

_SEE_REPO = Action.REPO_SEE.rule
_SEE_COLLECTION = Action.COLLECTION_READ.rule


def decide(identity: Identity, action: Action, resource: Resource) -> Decision:
    """Decide whether an identity may perform an action on a resource."""
    rule = action.rule
    if not isinstance(resource, rule.on):
        raise TypeError(f"{rule.name} does not apply to {type(resource).__name__}.")
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


def refuse_missing(identity: Identity, action: Action, placeholder: Repo | Collection) -> NoReturn:
    """Raise, for a missing resource, the error that a private resource in that namespace would give this caller.

    Otherwise a token without read-repos could discover the names of private repos by trying to write to them.
    """
    if isinstance(placeholder, Repo):
        see, hidden = Action.REPO_SEE, _hidden_repo(identity)
    else:
        see, hidden = Action.COLLECTION_READ, _hidden_collection(identity)
    if not decide(identity, see, placeholder).allowed:
        require(identity, action, placeholder)
    raise hidden.error()


def _on_repo(identity: Identity, rule: Rule, repo: Repo, *, is_author: bool) -> Decision:
    gate = repo.gated and not repo.private and bool(rule.gate_scopes)
    if rule.public and not repo.private and not gate:
        return ALLOWED
    role = _role_on_repo(identity, repo)
    if repo.private and role is None:
        return _hidden_repo(identity)
    if role is Role.CONTRIBUTOR and repo.creator_id == identity.user_id:
        role = Role.WRITE
    sufficient, see = rule.scopes, _SEE_REPO.scopes
    if identity.client_id is not None and identity.client_id == repo.creator_client:
        sufficient, see = sufficient + rule.creator_scopes, see + _SEE_REPO.creator_scopes
    if gate:
        return _on_gated_content(identity, rule, repo, role, sufficient)
    # Actions open to anyone on a public repo, or to authors on their posts there, need no grant for the organization.
    # A fine-grained token has the scopes for these on every repo it reads; what needs a role needs the scope there.
    open_to_anyone = rule.role is None or (rule.author and is_author)
    everywhere = open_to_anyone and (not repo.private or identity.kind is CredentialKind.FINE_GRAINED)
    scopes = _scopes_on_repo(identity, repo) | (identity.scopes if everywhere else NO_SCOPES)
    cannot_read = repo.private and identity.is_scoped and scopes.isdisjoint(see)
    if cannot_read and rule.read:
        return _hidden_repo(identity)
    refusal = _refusal(identity, rule, repo.owner, role, is_author=is_author)
    # On a private repo, a scope that does not include reading (write-discussions) also requires a read scope.
    missing_read = see if cannot_read and set(sufficient).isdisjoint(see) else ()
    return refusal or _check_scopes(identity, rule, scopes, sufficient, missing_read)


def _on_gated_content(
    identity: Identity, rule: Rule, repo: Repo, role: Role | None, sufficient: tuple[str, ...]
) -> Decision:
    """Decide on the content of a public gated repo. An exchanged token can read it outside its fence too, if the user
    was granted access individually.
    """
    has_access = repo.granted and identity.kind is not CredentialKind.ANONYMOUS and not identity.lapsed
    if role is None and not has_access:
        return forbid_gated(repo.label, sign_in=identity.kind is CredentialKind.ANONYMOUS)
    member_scopes = sufficient if role is not None else ()
    guest_scopes = rule.gate_scopes if has_access else ()
    everywhere = identity.scopes | identity.repos.get(repo.id, NO_SCOPES)
    scopes = _scopes_on_repo(identity, repo).intersection(member_scopes) | everywhere.intersection(guest_scopes)
    return _check_scopes(identity, rule, scopes, member_scopes + guest_scopes)


def _on_collection(identity: Identity, rule: Rule, collection: Collection) -> Decision:
    if rule.public and not collection.private:
        return ALLOWED
    role = _role_on(identity, collection.owner)
    if collection.private:
        cannot_read = identity.is_scoped and _scopes_on(identity, collection.owner).isdisjoint(_SEE_COLLECTION.scopes)
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
    if rule.credential is RequiredCredential.NONE:
        return ALLOWED
    if identity.kind is CredentialKind.ANONYMOUS:
        return ask_to_sign_in(rule.verb_phrase)
    if identity.kind is not CredentialKind.SESSION or not identity.operator:
        return forbid(f"Only an operator, signed in on the hub's pages, may {rule.verb_phrase}.")
    return ALLOWED


def _role_on(identity: Identity, owner: Namespace) -> Role | None:
    """The caller's role on resources of `owner`, within the limits of the credential."""
    if isinstance(owner, Organization):
        return identity.role_in(owner.id)
    return Role.ADMIN if identity.owns(owner.id) else None


def _role_on_repo(identity: Identity, repo: Repo) -> Role | None:
    """The caller's role on a repo. A fine-grained token for the repo does not need its owner."""
    if repo.id in identity.repos:
        own = isinstance(repo.owner, Account) and repo.owner.id == identity.user_id
        return Role.ADMIN if own else identity.memberships.get(repo.owner.id)
    return _role_on(identity, repo.owner)


def _scopes_on(identity: Identity, owner: Namespace) -> frozenset[str]:
    """The caller's scopes on resources of `owner`."""
    return identity.scopes_in(owner.id) if isinstance(owner, Organization) else identity.scopes_of_user(owner.id)


def _scopes_on_repo(identity: Identity, repo: Repo) -> frozenset[str]:
    """The caller's scopes on a repo; of a fine-grained token, without those that apply everywhere."""
    if identity.kind is CredentialKind.FINE_GRAINED:
        return identity.granted.get(repo.owner.id, NO_SCOPES) | identity.repos.get(repo.id, NO_SCOPES)
    return _scopes_on(identity, repo.owner)


def _refusal(
    identity: Identity, rule: Rule, owner: Namespace, role: Role | None, *, is_author: bool = False
) -> Decision | None:
    """The error for any missing requirement except scopes; None if all are met."""
    if identity.kind is CredentialKind.ANONYMOUS:
        return ask_to_sign_in(rule.verb_phrase)
    if identity.kind is CredentialKind.EXCHANGED and role is None:
        return forbid(
            f"This token works only inside its organization. It cannot be used to {rule.verb_phrase} elsewhere."
        )
    if rule.credential is RequiredCredential.SESSION and identity.kind is not CredentialKind.SESSION:
        return forbid(f"No token can be used to {rule.verb_phrase}. Sign in on the hub's pages.")
    if rule.credential is RequiredCredential.PERSONAL and identity.is_scoped:
        if identity.kind is CredentialKind.FINE_GRAINED:
            return forbid(f"No fine-grained token can {rule.verb_phrase}. Use a token with the read or write role.")
        return forbid(f"No app can {rule.verb_phrase}. Use the hub's pages or a personal token.")
    if not (rule.author and is_author):
        if rule.author and rule.role is None:
            return forbid(f"Only the author may {rule.verb_phrase}.")
        if rule.role is not None and (role is None or role < rule.role):
            return forbid(_role_message(identity, rule, owner, role, rule.role))
    if identity.token_role is TokenRole.READ and not rule.read:
        return forbid(f"This token can only read. Use a token with the write role to {rule.verb_phrase}.")
    return None


def _role_message(identity: Identity, rule: Rule, owner: Namespace, role: Role | None, required: Role) -> str:
    own = owner.id in (identity.user_id, *identity.memberships)
    if identity.kind is CredentialKind.FINE_GRAINED and own and role is None:
        return (
            f"This token is limited to other accounts, organizations or repos, so it cannot {rule.verb_phrase}. "
            "Create another token under Settings, Access tokens."
        )
    if isinstance(owner, Account):
        return f"Only the owner may {rule.verb_phrase}."
    if owner.id in identity.memberships and identity.role_in(owner.id) is None:
        return (
            f"This app was not granted access to the organization, so it cannot {rule.verb_phrase}. Authorize it again."
        )
    return f"You need the {required.label} role in the organization to {rule.verb_phrase}."


def _check_scopes(
    identity: Identity,
    rule: Rule,
    scopes: frozenset[str],
    sufficient: tuple[str, ...],
    missing_read: tuple[str, ...] = (),
) -> Decision:
    """Check the scopes of a scoped token: `scopes` must contain one of `sufficient`. `missing_read` lists read
    scopes that the token needs and lacks.
    """
    if not identity.is_scoped or rule.credential is RequiredCredential.ANY:
        return ALLOWED
    # A rule without scopes is disjoint from every token: it fails closed.
    lacking = (sufficient,) if scopes.isdisjoint(sufficient) else ()
    if missing_read:
        lacking = (*lacking, missing_read)
    if not lacking:
        return ALLOWED
    elsewhere = None if any(map(identity.scopes.isdisjoint, lacking)) else identity.kind
    return _missing_scopes(rule.verb_phrase, lacking, elsewhere)


# Cached: the rules name few combinations, and who am I asks for permissions only to leave fields out.
@cache
def _missing_scopes(
    verb_phrase: str, lacking: tuple[tuple[str, ...], ...], elsewhere: CredentialKind | None
) -> Decision:
    """The decision on a token that lacks one scope of each group in `lacking`. `elsewhere` is the kind of a token that
    has these scopes, but not on this resource.
    """
    groups = [_in_registry_order(group) for group in lacking]
    helpful = _in_registry_order(tuple(chain.from_iterable(groups)))
    # The registry lists the riskiest scopes first. A client requests every scope that a challenge names.
    weakest = tuple(group[-1] for group in groups)
    needs = ", and ".join(" or ".join(group) for group in groups)
    if elsewhere is None:
        reason = f"This token needs the scope {needs} to {verb_phrase}."
    elif elsewhere is CredentialKind.FINE_GRAINED:
        reason = (
            f"This token has the scope {needs} everywhere, which is not enough to {verb_phrase}."
            " Create a token that has it for this place."
        )
    else:
        reason = (
            f"This app was granted access to the organization without the scope {needs}, so it cannot"
            f" {verb_phrase}. Authorize it again."
        )
    return forbid(reason, helpful, weakest)


def _in_registry_order(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(scope.name for scope in BUILT_IN_SCOPES if scope.name in names)


def _hidden_repo(identity: Identity) -> Decision:
    return HIDDEN_REPO_SIGN_IN if identity.kind is CredentialKind.ANONYMOUS else HIDDEN_REPO


def _hidden_collection(identity: Identity) -> Decision:
    return HIDDEN_COLLECTION_SIGN_IN if identity.kind is CredentialKind.ANONYMOUS else HIDDEN_COLLECTION
