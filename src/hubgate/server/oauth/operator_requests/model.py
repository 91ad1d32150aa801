"""A request to the operator, as the requester and the operator see it."""

from msgspec import Struct

from hubgate.server.oauth.exchange.model import REQUIRED_PLAN

EXCHANGE = "token-exchange"
LONGEST_REASON = 1000
MAX_PENDING_PER_APP = 10
MAX_SHOWN = 50


class OperatorRequest(Struct, frozen=True):
    """A request to the operator, with its app and requester. `owner` is the name of a user or an organization.

    The fields are in the order of `store.COLUMNS`.
    """

    id: str
    client_id: str
    wanted: str
    reason: str
    created_at: int
    # None while pending; 1 if granted, 0 if rejected.
    granted: int | None
    decided_at: int | None
    app_name: str
    owner: str
    of_organization: int
    # Empty if the account was deleted.
    requester: str
    # The organization's plan; empty for a user's app.
    plan: str

    @property
    def needs_plan(self) -> bool:
        """Whether a grant has no effect until the organization has the plan that token exchange needs."""
        return self.wanted == EXCHANGE and self.plan != REQUIRED_PLAN

    @property
    def description(self) -> str:
        return describe(self.wanted)

    @property
    def app_path(self) -> str:
        """The path of the app's settings page."""
        root = f"/organizations/{self.owner}" if self.of_organization else ""
        return f"{root}/settings/applications/{self.client_id}"


def describe(wanted: str) -> str:
    return "token exchange" if wanted == EXCHANGE else f"the scope {wanted}"
