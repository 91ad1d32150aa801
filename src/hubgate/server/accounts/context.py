"""The dependencies that all account use cases share."""

from collections.abc import Awaitable, Callable, Sequence

from msgspec import Struct, field

from hubgate.server.accounts.model import RevokedCounts
from hubgate.server.audit.model import Actor
from hubgate.server.clock import Clock
from hubgate.server.jobs.slots import Slots
from hubgate.server.mail.outbox import Outbox
from hubgate.server.secret import ServerSecret
from hubgate.server.storage.database import Database, Tx
from hubgate.server.throttle.rate_limiter import Limiter

RevokeSignIns = Callable[[Tx, str, int], Awaitable[RevokedCounts]]
DeleteOwned = Callable[[Tx, str, int], Awaitable[None]]
PauseOwned = Callable[[Tx, str, int], Awaitable[None]]
RenameOwned = Callable[[Tx, str, str, str, int], Awaitable[None]]


class Accounts(Struct, frozen=True):
    db: Database
    clock: Clock
    secret: ServerSecret
    outbox: Outbox
    limiter: Limiter
    base_url: str
    # open, invite or closed.
    signup: str
    # Deletes the repos and webhooks of an owner, in the transaction that deletes the owner.
    delete_owned: DeleteOwned
    # Renames the repos of an owner from the old name to the new name, in the transaction that renames the owner.
    rename_owned: RenameOwned
    # Pauses the Spaces of a user, in the transaction that disables the user.
    pause_owned: PauseOwned
    # Revokes the codes and tokens of all apps that a user signed in to, in the transaction that sets a new password.
    revoke_app_sign_ins: RevokeSignIns
    # For an account whose address was never verified: does what `revoke_app_sign_ins` does, and also deletes the user's
    # consents, and the apps and webhooks of the given owners. Audit logs record the actor and the reason.
    revoke_apps_and_webhooks: Callable[[Tx, str, Sequence[str], Actor, str, int], Awaitable[RevokedCounts]]
    # Deletes redirects from names of the given owners to repos of others, in the same transaction; returns how many.
    unlink_redirects: Callable[[Tx, Sequence[str], Actor, str, int], Awaitable[int]]

    # Processes that draw uploaded pictures anew, in all and for one user.
    # Waiting requests retain their bodies.
    picture_slots: Slots = field(
        default_factory=lambda: Slots(2, 1, "Too many pictures at once. Try again.", max_waiting=4)
    )

    def link(self, path: str) -> str:
        """An absolute URL of the hub, for a mail."""
        return f"{self.base_url}{path}"
