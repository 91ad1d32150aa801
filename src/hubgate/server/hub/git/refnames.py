"""What a ref may be called: git's own rules (git-check-ref-format), and ours, so that every surface can name it."""

import re

LONGEST_REF = 400
LONGEST_PART = 200

# No control characters, no space, none of ~^:?*[\ and no @{.
_REFUSED = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_LOOKS_LIKE_A_COMMIT = re.compile(r"[0-9a-fA-F]{40}\Z")


def why_not(name: str) -> str | None:
    """What is wrong with a full name such as refs/heads/main; None if nothing is.

    Bytes that are no UTF-8 come as surrogates.
    """
    parts = name.split("/")
    if (
        len(parts) < 2
        or _REFUSED.search(name)
        or name.endswith(".")
        or any(not part or part.startswith((".", "-")) or part.endswith(".lock") for part in parts)
    ):
        return "this is no name for a ref"
    if _SURROGATE.search(name):
        return "the name is not UTF-8"
    if len(name.encode()) > LONGEST_REF or any(len(part.encode()) > LONGEST_PART for part in parts):
        return "the name is too long"
    short = name.split("/", 2)[-1]
    if short in ("HEAD", "@") or _LOOKS_LIKE_A_COMMIT.match(short):
        # It would shadow the head or a commit wherever a revision is asked for.
        return "this name stands for something else"
    return None
