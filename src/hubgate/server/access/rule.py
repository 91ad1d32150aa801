"""What a row of the action registry says."""

from dataclasses import dataclass
from enum import Enum

from hubgate.server.accounts.roles import Role


class Credential(Enum):
    """The credentials that can do it at all, before role and scope are asked."""

    NONE = "none is needed"
    ANY = "any; an app's token needs no scope"
    SCOPED = "any; an app's token needs one of the scopes"
    PERSONAL = "a session or personal token; no scope opens it to apps"
    SESSION = "a session"
    OPERATOR = "an operator's session"


@dataclass(frozen=True, slots=True)
class Rule:
    """One row.

    name        stable; logs and tests use it
    on          the kinds of resource it is judged on
    does        completes "You need ... to ..."
    credential  see above
    role        least role in the owning organization; an owner has every role in their own namespace; None asks none
    author      whoever wrote the post may too, whatever their role; where `role` is None, only they
    read        it changes nothing: a personal read token suffices, and without the scope a private thing is hidden
    public      anyone may, where the thing is neither private nor behind a gate
    scopes      one of them suffices for an app's token
    created     one of these suffices too, on repos that the asking app created
    gate        the gate of a public gated repo applies; these scopes suffice for one let through it individually
    fenced      an exchanged token may only inside its organization
    """

    name: str
    on: tuple[type, ...]
    does: str
    credential: Credential = Credential.SCOPED
    role: Role | None = None
    author: bool = False
    read: bool = False
    public: bool = False
    scopes: tuple[str, ...] = ()
    created: tuple[str, ...] = ()
    gate: tuple[str, ...] = ()
    fenced: bool = True
