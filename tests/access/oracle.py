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
from tests.access.scenes import Caller, Scene

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
    own_in_reach = scene.column == "own" and (not fenced or action in KNOWN_ACROSS_THE_FENCE)
    in_reach = caller.inside or own_in_reach
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
    doors = [action in OPENED[scope] for scope in caller.scopes if in_reach or action.startswith("discussion.")]
    if "contribute-repos" in caller.scopes and scene.created_by_app and in_reach:
        doors.append(action in CONTRIBUTE_OPENS_IN_CREATED)
    if "gated-repos" in caller.scopes and scene.admitted:
        doors.append(action in GATED_OPENS_WHERE_ADMITTED)
    return any(doors)
