"""The `groups` claim: the user's organizations as flat names, for apps that know groups and not organizations."""

from hubgate.server.access.caller import Caller
from hubgate.server.accounts.model import Membership
from hubgate.server.accounts.tokens.text import read_token
from hubgate.server.oauth.claims import GROUPS_IN_ID_TOKEN, GROUPS_SCOPE
from hubgate.server.oauth.context import OAuth
from hubgate.server.oauth.tokens import store
from hubgate.server.oauth.tokens.bearer import caller_of_rows


def visible_memberships(caller: Caller) -> list[Membership]:
    """All memberships, because an app needs an organization's id to request access to it; for an exchanged token, only
    the membership in its organization.
    """
    fence = caller.identity.fence
    return [m for m in caller.signed_in_person.memberships if fence is None or m.organization.id == fence]


def group_names(caller: Caller, place: str) -> list[str] | None:
    """`org` for each organization, and `org:role` for those that the user granted to the app.

    None if the claim was not requested for `place`, without the scope, or if the token is for other servers.
    """
    app, identity = caller.app, caller.identity
    if app is None or not app.is_for_this_hub or place not in app.claims or GROUPS_SCOPE not in identity.scopes:
        return None
    names = []
    for membership in visible_memberships(caller):
        names.append(membership.organization.name)
        if identity.role_in(membership.organization.id) is not None:
            names.append(f"{membership.organization.name}:{membership.role.label}")
    return names


async def groups_for_id_token(oauth: OAuth, access_token: str, places: str) -> list[str] | None:
    """The claim for the ID token that is issued with an access token."""
    if GROUPS_IN_ID_TOKEN not in places.split() or (read := read_token(access_token)) is None:
        return None
    rows = await store.find_token(oauth.db, read[1], oauth.clock())
    return group_names(caller_of_rows(rows, oauth.base_url), GROUPS_IN_ID_TOKEN) if rows else None
