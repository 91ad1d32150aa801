"""Limits on mail that users cause for each other."""

from msgspec import Struct

from hubgate.server.storage.database import Tx
from hubgate.server.throttle.rate_limiter import Limit, Limiter

_HOUR, _DAY = 60 * 60, 24 * 60 * 60


class MailLimits(Struct, frozen=True):
    """Limits on the mail about one subject: by sender, by recipient and by the pair of both."""

    by_sender: Limit
    to_recipient: Limit
    from_sender_to_recipient: Limit

    @classmethod
    def of_subject(cls, subject: str) -> "MailLimits":
        return cls(
            Limit(f"{subject} mail sender", 200, _DAY),
            Limit(f"{subject} mail recipient", 30, _HOUR),
            Limit(f"{subject} mail pair", 5, _HOUR),
        )

    async def count_in(self, tx: Tx, limiter: Limiter, sender_id: str, recipient_id: str) -> bool:
        """Count one mail; False if a limit is reached.

        The narrowest limit is checked first: mail that it stops must not count towards the other two.
        """
        for limit, key in (
            (self.from_sender_to_recipient, f"{sender_id} {recipient_id}"),
            (self.by_sender, sender_id),
            (self.to_recipient, recipient_id),
        ):
            if not await limiter.count_in(tx, limit, key):
                return False
        return True
