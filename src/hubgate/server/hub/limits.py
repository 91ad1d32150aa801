"""What one request may take of the hub, where an operator has nothing to choose: given, so that it can be reached."""

from dataclasses import dataclass

MIB = 1024 * 1024


@dataclass(frozen=True)
class Limits:
    # Large files come in parts of this size, from a size on that is worth the second write.
    part: int = 64 * MIB
    in_parts_from: int = 512 * MIB
    # Of a push. Something is remembered of every tree.
    pushed_objects: int = 2_000_000
    # For all the paths of a request: rules made to be slow are hours of work.
    judging_seconds: float = 10.0
    # For the number of commits of all refs that one request moves; what is not counted by then is counted later.
    counting_seconds: float = 10.0
    # A client that takes nothing of a file or a fetch for this long is gone, or wants to keep us busy.
    stall_seconds: float = 5 * 60.0
    # Proxies give up on an answer that is silent for a minute; a push says more often that it is looked at.
    silent_seconds: float = 5.0
    # Branches and tags of a repo: every clone is told of all of them.
    refs: int = 50_000
