"""Finds the repos that a user chooses for a fine-grained token."""

from collections.abc import Iterable

from hubgate.server.access.actions import Action
from hubgate.server.access.identity import Identity
from hubgate.server.access.policy import decide
from hubgate.server.accounts.tokens.limits import MAX_REPOS, REPO, NewLimit
from hubgate.server.errors import FieldErrors
from hubgate.server.hub.context import Repos
from hubgate.server.hub.repos import store
from hubgate.server.hub.repos.model import RepoType

_TYPE_OF = {repo_type.plural: repo_type for repo_type in RepoType}


async def repo_limits(
    repos: Repos, identity: Identity, names: Iterable[str], scopes: Iterable[str], field: str = "repos"
) -> list[NewLimit]:
    """The limits for repos with names such as `acme/model` or `datasets/acme/data`, or with their addresses on this
    hub. A repo that the user may not see is reported like a missing one.
    """
    chosen = list(dict.fromkeys(names))
    if len(chosen) > MAX_REPOS:
        raise FieldErrors({field: f"A token may have at most {MAX_REPOS} repos. Choose their owner instead."})
    limits, unknown = {}, list[str]()
    for name in chosen:
        limit = await _limit_of(repos, identity, name.removeprefix(f"{repos.base_url}/"), frozenset(scopes))
        if limit is None:
            unknown.append(name[:120])
        else:
            limits[limit.target_id] = limit
    if unknown:
        raise FieldErrors({field: f"There is no repo {' or '.join(unknown)}, or you have no access to it."})
    return list(limits.values())


async def _limit_of(repos: Repos, identity: Identity, text: str, scopes: frozenset[str]) -> NewLimit | None:
    *kind, namespace, name = ["", *text.strip("/").split("/")]
    prefix = "/".join(kind).strip("/")
    repo_type = _TYPE_OF.get(prefix or RepoType.MODEL.plural)
    found = await store.named(repos.db, repo_type.value, namespace, name) if repo_type and namespace else None
    if found is None or not decide(identity, Action.REPO_SEE, found.as_resource()).allowed:
        return None
    return NewLimit(REPO, found.id, found.owner_id, scopes)
