"""What every use case on accounts needs, in one value."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from hubgate.server.accounts.ended import Ended
from hubgate.server.clock import Clock
from hubgate.server.mail.outbox import Outbox
from hubgate.server.secret import ServerSecret
from hubgate.server.storage.database import Database, Tx
from hubgate.server.throttle.limiter import Limiter

EndedAlong = Callable[[Tx, str, int], Awaitable[Ended]]
TakenAlong = Callable[[Tx, str, int], Awaitable[None]]
MovedAlong = Callable[[Tx, str, str, str, int], Awaitable[None]]


@dataclass(frozen=True)
class Accounts:
    db: Database
    clock: Clock
    secret: ServerSecret
    outbox: Outbox
    limiter: Limiter
    base_url: str
    # open, invite or closed.
    signup: str
    # What the owner of this id has beyond accounts goes in the unit that deletes it: its repos and webhooks.
    take_along: TakenAlong
    # In the unit that renames it, after the old name and the new one: its repos, whose names begin with its own.
    move_along: MovedAlong
    # In the unit that sets a new password: the codes and tokens of every app that this user signed in to.
    end_app_sign_ins: EndedAlong
    # The same where the address was never proven, with the user's consents, and the apps and webhooks of these owners.
    end_created: Callable[[Tx, str, Sequence[str], int], Awaitable[Ended]]

    def link(self, path: str) -> str:
        """An address of ours for a mail."""
        return f"{self.base_url}{path}"
