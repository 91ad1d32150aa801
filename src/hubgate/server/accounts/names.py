"""Names of users and organizations: one namespace, compared case-insensitively, shown as written."""

import re

from hubgate.server.errors import Unprocessable

LONGEST_NAME = 42
_SHAPE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,41}\Z")

# First path segments of the hub's routes, current and planned, `hardware` in `/api/jobs/hardware`, and words that would
# make a name look official.
RESERVED = frozenset(
    """
    about account accounts admin administrator api apps assets auth avatars billing blog buckets change-email chat
    collections connected contact dashboard datasets docs download enterprise explore favicon.ico favicons files git
    hardware hc healthz help home hosted hub hubgate inference invitations invite jobs join kernels landing legal lfs
    login logout mail metrics models new new-dataset new-space notifications oauth operator organizations orgs papers
    posts pricing privacy profile readyz reset robots.txt root search security settings setup signin signup spaces
    static status storage support system tasks terms theme token tokens tunnel tunnels users v1 v2 verify webhooks
    well-known www xet
    """.split()  # noqa: SIM905 -- a paragraph of words reads better than a hundred lines
)


def check_name(name: str) -> str:
    """Validate a name and return it; Unprocessable says which rule is broken."""
    if not _SHAPE.match(name):
        raise Unprocessable(
            f"A name must have 1 to {LONGEST_NAME} letters, digits, dots, dashes or underscores "
            "and start with a letter or digit."
        )
    if "--" in name or ".." in name:
        raise Unprocessable("A name cannot contain two dashes or two dots in a row.")
    if name_key(name) in RESERVED:
        raise Unprocessable(name_taken_message(name))
    return name


def name_taken_message(name: str) -> str:
    return f"{name} is already taken."


def name_key(name: str) -> str:
    """The key for comparison. Names are ASCII, so lower-casing is unambiguous."""
    return name.lower()
