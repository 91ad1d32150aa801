"""The scope registry: the name of each scope, what the scope allows an app to do, and its risk.

Consent text and discovery are generated from these rows. A new scope needs one row here and an action in
`access/actions.py` that accepts it; the access matrix test fails until it covers the scope.
"""

import difflib
from collections.abc import Iterable
from enum import Enum
from functools import lru_cache

from msgspec import Struct


class Risk(Enum):
    """Risk groups in the order of the consent page: the riskiest first."""

    CHANGES = "Make changes or act on your behalf"
    PRIVATE = "See private information"
    IDENTITY = "Know who you are"


class Scope(Struct, frozen=True):
    name: str
    risk: Risk
    text: str


BUILT_IN_SCOPES: tuple[Scope, ...] = (
    Scope("manage-repos", Risk.CHANGES, "Create, edit, move and delete all your repos"),
    Scope("write-repos", Risk.CHANGES, "Read and edit all your repos, including private ones"),
    Scope("contribute-repos", Risk.CHANGES, "Create repos, and use only the repos it created"),
    Scope("write-collections", Risk.CHANGES, "Read, create, edit and delete your collections"),
    Scope(
        "write-discussions",
        Risk.CHANGES,
        "Open discussions and pull requests, comment, react and close on your behalf",
    ),
    Scope("webhooks", Risk.CHANGES, "Create and edit webhooks, which decide where notifications are sent"),
    Scope("jobs", Risk.CHANGES, "Run jobs on your behalf; may cost money"),
    Scope("inference-api", Risk.CHANGES, "Send inference requests on your behalf; may cost money"),
    Scope(
        "read-repos", Risk.PRIVATE, "Read your repos, including private ones, and those of the organizations you tick"
    ),
    Scope("gated-repos", Risk.PRIVATE, "Read gated public repos you have access to; nothing private"),
    Scope("read-collections", Risk.PRIVATE, "Read your collections, including private ones"),
    Scope(
        "read-billing",
        Risk.PRIVATE,
        "See whether you and the organizations you tick have a payment method; no details",
    ),
    Scope("email", Risk.PRIVATE, "See your e-mail address"),
    Scope("profile", Risk.IDENTITY, "See your name, avatar and website"),
    Scope("openid", Risk.IDENTITY, "Recognize you when you come back"),
)

SCOPE_NAMES = frozenset(scope.name for scope in BUILT_IN_SCOPES)
# Scopes that identify the user. They cannot be unticked, do not apply to organizations, and are the only scopes of the
# hub that a token for another server can have.
IDENTITY_SCOPES = frozenset({"openid", "profile", "email"})
# Defined by OpenID Connect and sent by existing clients; ignored here.
IGNORED_SCOPES = frozenset({"offline_access", "address", "phone"})
LONGEST_SHOWN = 60
# Longer texts are parsed each time, so that no client can fill the memory with them.
_LONGEST_CACHED = 500


def parse_scopes(text: str) -> tuple[str, ...]:
    """The names in a space-separated scope parameter, in order, without duplicates. Unknown names are not rejected."""
    return _parse_cached(text) if len(text) <= _LONGEST_CACHED else _parse(text)


def _parse(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name in text.split(" ") if name))


_parse_cached = lru_cache(2_000)(_parse)


def join_scopes(names: Iterable[str]) -> str:
    """A set of scopes as text: space-separated, built-in names in registry order, then the operator's scopes.

    The scopes of codes and tokens are in the order requested instead, because apps compare them with their request.
    """
    wanted = set(names)
    ordered = [scope.name for scope in BUILT_IN_SCOPES if scope.name in wanted]
    return " ".join([*ordered, *sorted(wanted - SCOPE_NAMES)])


def unknown_scope_message(name: str, known: Iterable[str]) -> str:
    """The error message for an unknown scope name, with the closest known name."""
    shown = name[:LONGEST_SHOWN]
    close = difflib.get_close_matches(shown, list(known), n=1)
    return f"There is no scope {shown}." + (f" Did you mean {close[0]}?" if close else "")
