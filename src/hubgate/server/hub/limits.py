"""Per-request limits that are not operator settings. The values are injected so that tests can lower them."""

from dataclasses import dataclass

MIB = 1024 * 1024


@dataclass(frozen=True)
class Limits:
    # Bytes per part of a multipart upload, and the file size from which multipart is worth the second write.
    part: int = 64 * MIB
    in_parts_from: int = 512 * MIB
    # Objects in one push. Inspection stores an entry for every tree.
    pushed_objects: int = 2_000_000
    # For matching all paths of a request: rules written to be slow could take hours.
    judging_seconds: float = 10.0
    # For counting the commits of all refs that one request moves; the rest is counted in the background.
    counting_seconds: float = 10.0
    # A client that reads nothing from a download or fetch for this long is disconnected or an attacker.
    stall_seconds: float = 5 * 60.0
    # Interval of keep-alives during a push: proxies drop a response that is silent for a minute.
    silent_seconds: float = 5.0
    # Branches and tags of a repo: every clone receives the whole list.
    refs: int = 50_000
    # Repos swept for guest data in one step of housekeeping.
    swept_repos: int = 50
