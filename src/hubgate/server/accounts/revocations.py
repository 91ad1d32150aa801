"""Counts of the sessions, tokens and other items that a new password ended, for the mail and the page."""

from dataclasses import dataclass, fields


@dataclass(frozen=True)
class RevokedCounts:
    """Counts of ended items, in the order in which they are listed. Authorization codes end too but are not counted."""

    sessions: int = 0
    personal_tokens: int = 0
    app_tokens: int = 0
    # Token families: an app has one refresh token at a time.
    refresh_tokens: int = 0
    connected_apps: int = 0
    apps: int = 0
    webhooks: int = 0
    invitations: int = 0
    memberships: int = 0
    # From names of the account to repos of other owners.
    redirects: int = 0

    def __add__(self, other: "RevokedCounts") -> "RevokedCounts":
        return RevokedCounts(*(getattr(self, field.name) + getattr(other, field.name) for field in fields(self)))

    def listed(self, *, other: bool = False) -> str:
        """A text such as "2 sessions, 1 app token"; empty if nothing ended. `other`: the current session continues."""
        counted = {
            "other session" if other else "session": self.sessions,
            "personal token": self.personal_tokens,
            "app token": self.app_tokens,
            "refresh token": self.refresh_tokens,
            "connected app": self.connected_apps,
            "registered app": self.apps,
            "webhook": self.webhooks,
            "invitation": self.invitations,
            "membership": self.memberships,
            "redirect": self.redirects,
        }
        return ", ".join(f"{count:,} {noun}{'' if count == 1 else 's'}" for noun, count in counted.items() if count)
