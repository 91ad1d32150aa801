"""The expected decision: everything the user may do, minus what the credential does not allow.

`policy.py` works the other way round, from a rule to a caller, so that the two can disagree.
"""

from tests.access.expectations import (
    CLOSED_TO_APPS,
    CONTRIBUTE_OPENS_IN_CREATED,
    FULL,
    GATED_OPENS_WHERE_ADMITTED,
    KNOWN_ACROSS_THE_FENCE,
    OPENED_BY,
    READS,
    SESSION_ONLY,
    WITHOUT_SCOPE,
)
from tests.access.scenes import LIMITED, ROLES, Caller, Scene

from hubgate.server.access.resource import Post, Repo

OPENED = {scope: frozenset(actions.split()) for scope, actions in OPENED_BY.items()}


def expected(caller: Caller, action: str, scene: Scene) -> str:
    """A, F or H."""
    cells = FULL[action][scene.condition]
    if cells["nobody"] == "A":
        return "A"
    full = cells[scene.column]
    if caller.kind in ("anonymous", "session"):
        return full
    if caller.kind in ("read token", "write token"):
        barred = action in SESSION_ONLY or (caller.kind == "read token" and action not in READS)
        return "F" if full == "A" and barred else full
    return _for_app(caller, action, scene)


def _for_app(caller: Caller, action: str, scene: Scene) -> str:
    cells = FULL[action][scene.condition]
    fenced = caller.kind == "exchanged"
    limited = caller.kind == LIMITED
    owned = not fenced and (not limited or caller.own or _is_chosen(caller, scene))
    own_in_reach = scene.column == "own" and (owned or action in KNOWN_ACROSS_THE_FENCE)
    in_reach = caller.inside or own_in_reach or (scene.column in ROLES and _is_chosen(caller, scene))
    may = cells[scene.column if in_reach else "stranger"]
    if may == "H":
        return "H"
    sees = not scene.private or _opens(caller, _looking(action), scene, in_reach)
    if not sees and action in READS:
        return "H"
    if may == "F" or action in CLOSED_TO_APPS:
        return "F"
    if fenced and not in_reach and action not in GATED_OPENS_WHERE_ADMITTED:
        return "F"
    return "A" if sees and _opens(caller, action, scene, in_reach) else "F"


def _looking(action: str) -> str:
    return "collection.read" if action.startswith("collection.") else "repo.see"


def _opens(caller: Caller, action: str, scene: Scene, in_reach: bool) -> bool:
    if action in WITHOUT_SCOPE:
        return True
    scopes = _effective(caller, scene)
    if caller.kind == LIMITED and not _is_open_to_anyone(action, scene):
        scopes -= caller.everywhere - (caller.scopes if _is_here(caller, scene) else frozenset())
    doors = [action in OPENED[scope] for scope in scopes if in_reach or action.startswith("discussion.")]
    if caller.kind != LIMITED and "contribute-repos" in scopes and scene.created_by_app and in_reach:
        doors.append(action in CONTRIBUTE_OPENS_IN_CREATED)
    for_anyone = scopes if caller.kind != LIMITED or _is_chosen(caller, scene) else caller.everywhere
    if "gated-repos" in for_anyone and scene.admitted:
        doors.append(action in GATED_OPENS_WHERE_ADMITTED)
    return any(doors)


def _effective(caller: Caller, scene: Scene) -> frozenset[str]:
    """The scopes that apply to the resource. A fine-grained token has some everywhere and others in its places."""
    if caller.kind != LIMITED:
        return caller.scopes
    return caller.everywhere | (caller.scopes if _is_here(caller, scene) else frozenset())


def _is_here(caller: Caller, scene: Scene) -> bool:
    """Whether a fine-grained token was given scopes for this place."""
    return caller.inside or (caller.own and scene.column == "own") or _is_chosen(caller, scene)


def _is_open_to_anyone(action: str, scene: Scene) -> bool:
    """Whether a stranger may do it on a public repo: what needs a role there, also needs the scope there."""
    if not isinstance(scene.resource, Repo | Post):
        return True
    cells = FULL[action].get(scene.condition.replace("private", "open"))
    return cells is not None and cells["stranger"] == "A"


def _is_chosen(caller: Caller, scene: Scene) -> bool:
    """Whether it is the repo that a fine-grained token is limited to."""
    return caller.chosen and isinstance(scene.resource, Repo | Post)
