"""What a new password ended, counted, for the mail and the page that say so."""

from dataclasses import dataclass, fields


@dataclass(frozen=True)
class Ended:
    """In the order in which it is listed. Codes on their way to an app end too and are not counted."""

    sessions: int = 0
    personal_tokens: int = 0
    app_tokens: int = 0
    # Families: an app has one refresh token at a time.
    refresh_tokens: int = 0
    connected_apps: int = 0
    apps: int = 0
    webhooks: int = 0
    invitations: int = 0

    def __add__(self, other: "Ended") -> "Ended":
        return Ended(*(getattr(self, field.name) + getattr(other, field.name) for field in fields(self)))

    def listed(self, *, other: bool = False) -> str:
        """Such as "2 sessions, 1 app token"; empty if nothing ended. With `other`, one session went on."""
        counted = {
            "other session" if other else "session": self.sessions,
            "personal token": self.personal_tokens,
            "app token": self.app_tokens,
            "refresh token": self.refresh_tokens,
            "connected app": self.connected_apps,
            "registered app": self.apps,
            "webhook": self.webhooks,
            "invitation": self.invitations,
        }
        return ", ".join(f"{count:,} {noun}{'' if count == 1 else 's'}" for noun, count in counted.items() if count)
