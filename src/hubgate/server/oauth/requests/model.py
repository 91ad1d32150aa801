"""A request, as its asker and the operator see it."""

from dataclasses import dataclass

EXCHANGE = "token-exchange"
LONGEST_REASON = 1000
MOST_WAITING_OF_APP = 10
SHOWN = 50


@dataclass(frozen=True, slots=True)
class OperatorRequest:
    """The order of the fields is that of `store.COLUMNS`. `owner` is the name of a user or an organization."""

    id: str
    client_id: str
    wanted: str
    reason: str
    created_at: int
    # None while it waits; then 1 granted, 0 refused.
    granted: int | None
    decided_at: int | None
    app_name: str
    owner: str
    of_organization: int
    # Empty if they are gone.
    asker: str

    @property
    def what(self) -> str:
        return described(self.wanted)

    @property
    def app_path(self) -> str:
        """Where its owner looks after the app."""
        root = f"/organizations/{self.owner}" if self.of_organization else ""
        return f"{root}/settings/applications/{self.client_id}"


def described(wanted: str) -> str:
    return "token exchange" if wanted == EXCHANGE else f"the scope {wanted}"
