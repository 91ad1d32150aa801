"""The rule of an action: a row of the action registry."""

from enum import Enum

from msgspec import Struct

from hubgate.server.accounts.roles import Role


class RequiredCredential(Enum):
    """The credentials that may perform an action at all, before role and scope are checked."""

    NONE = "no credential"
    ANY = "any; an app's token needs no scope"
    SCOPED = "any; an app's token needs one of the scopes"
    PERSONAL = "a session or personal token; no scope opens it to apps"
    SESSION = "a session"
    OPERATOR = "an operator's session"


class Rule(Struct, frozen=True):
    """The rule of an action.

    name            stable; used in error messages and tests
    on              the kinds of resources it applies to
    verb_phrase     completes "You need ... to ..."
    credential      the credentials that may perform it
    role            minimum role in the owning organization; users have every role in their own namespace; None: no role
                    is required
    author          the author of the post may perform it, regardless of role; if `role` is None, only the author
    read            read-only: a personal read token suffices, and a private resource is hidden if the scope is missing
    public          anyone may perform it on a resource that is neither private nor gated
    scopes          an app's token needs one of these scopes
    creator_scopes  on repos that the calling app created, one of these scopes suffices too
    gate_scopes     if not empty, the gate of a public gated repo applies, and one of these scopes suffices for users
                    with individual access
    fenced          an exchanged token may perform it only inside its organization
    """

    name: str
    on: tuple[type, ...]
    verb_phrase: str
    credential: RequiredCredential = RequiredCredential.SCOPED
    role: Role | None = None
    author: bool = False
    read: bool = False
    public: bool = False
    scopes: tuple[str, ...] = ()
    creator_scopes: tuple[str, ...] = ()
    gate_scopes: tuple[str, ...] = ()
    fenced: bool = True
