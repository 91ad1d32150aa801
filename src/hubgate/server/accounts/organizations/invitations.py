"""Invitations: into an organization by name or by e-mail, and to the hub by e-mail. Good for seven days and one use."""

import secrets
from dataclasses import dataclass

from hubgate.server.accounts import store as account_store
from hubgate.server.accounts.checking import check_field
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.emails import check_email
from hubgate.server.accounts.holding import hold
from hubgate.server.accounts.limits import INVITATION_MAILS, INVITATIONS_BY_SENDER
from hubgate.server.accounts.model import Organization, User
from hubgate.server.accounts.organizations import store
from hubgate.server.accounts.organizations.changing import begin_as_admin
from hubgate.server.accounts.organizations.members import begin_joining, join, record_added
from hubgate.server.accounts.organizations.model import Invitation
from hubgate.server.accounts.roles import Role
from hubgate.server.audit.model import Actor, Kind
from hubgate.server.audit.record import record
from hubgate.server.clock import DAY
from hubgate.server.errors import Conflict, FieldErrors, Forbidden, NotFound
from hubgate.server.ids import new_id
from hubgate.server.mail import texts
from hubgate.server.paging import Page, PageRequest, page_of
from hubgate.server.secret import fingerprint
from hubgate.server.storage.database import Tx

LASTS = 7 * DAY
MOST_OPEN = 500
CURSOR = (str,)
GONE = "This invitation was used, withdrawn or is out of date. Ask for a new one."


@dataclass(frozen=True)
class Opened:
    """What the holder of an invitation's link sees. Without an organization it leads to the hub alone."""

    invitation: Invitation
    organization: Organization | None


async def invite(accounts: Accounts, organization: Organization, invitee: str, role: Role, actor: Actor) -> None:
    """By user name, or by e-mail address whether it has an account or not."""
    invitee, now = invitee.strip(), accounts.clock()
    user, recipient = await _find(accounts, invitee)
    email = None if user else recipient
    # As the invited is called, not as the inviter spelled it.
    called = user.name if user else recipient
    secret = secrets.token_urlsafe(32)
    user_id = user.id if user else None
    invitation = Invitation(new_id(now), organization.id, email, user_id, role, actor.user_id, now, now + LASTS)

    async def unit(tx: Tx) -> None:
        if user is not None:
            await hold(tx, user)
        await begin_as_admin(tx, organization, actor)
        if member := await _member(tx, organization, user, recipient):
            raise FieldErrors({"invitee": f"{member} is a member already."})
        # In the unit, so that what is refused for another reason does not count.
        if actor.user_id is not None:
            await accounts.limiter.require_in(tx, INVITATIONS_BY_SENDER, actor.user_id)
        await accounts.limiter.require_in(tx, INVITATION_MAILS, recipient)
        await store.drop_same_invitations(tx, organization.id, email, user_id)
        if await store.count_invitations(tx, organization.id, now) >= MOST_OPEN:
            raise FieldErrors({"invitee": f"{MOST_OPEN} invitations are open. Withdraw some first."})
        await store.add_invitation(tx, fingerprint(secret), invitation)
        link = accounts.link(f"/invitations/{secret}")
        await accounts.outbox.add(tx, texts.invited_to_organization(recipient, organization.name, actor.name, link))
        data = {"invitee": called, "role": role.label}
        text = f"invited {called} as {role.label}"
        await record(tx, organization.id, Kind.ORG_INVITE_USER, text, actor, now, data)

    await accounts.db.write(unit)
    accounts.outbox.hurry()


async def invite_to_hub(accounts: Accounts, email: str) -> str:
    """The link, also mailed. Works whatever the sign-up setting but `closed`."""
    email = check_field("email", check_email, email)
    if accounts.signup == "closed":
        raise Conflict("HUBGATE_SIGNUP is closed: nobody could accept it. Run: hubgate admin user create")
    now, secret = accounts.clock(), secrets.token_urlsafe(32)
    invitation = Invitation(new_id(now), None, email, None, Role.READ, None, now, now + LASTS)
    link = accounts.link(f"/invitations/{secret}")

    async def unit(tx: Tx) -> None:
        if await account_store.user_by_email(tx, email):
            raise Conflict(f"{email} has an account already.")
        await store.drop_same_invitations(tx, None, email, None)
        await store.add_invitation(tx, fingerprint(secret), invitation)
        await accounts.outbox.add(tx, texts.invited_to_hub(email, link))

    await accounts.db.write(unit)
    accounts.outbox.hurry()
    return link


async def open_link(accounts: Accounts, secret: str) -> Opened:
    invitation = await store.invitation_by_key(accounts.db, fingerprint(secret), accounts.clock())
    if invitation is None:
        raise NotFound(GONE)
    if invitation.org_id is None:
        return Opened(invitation, None)
    return Opened(invitation, await account_store.organization(accounts.db, invitation.org_id))


async def of_organization(
    accounts: Accounts, organization: Organization, asked: PageRequest
) -> Page[tuple[Invitation, str]]:
    """Oldest first, each with the name or address of who is invited."""
    now, after = accounts.clock(), asked.last_shown()

    async def unit(tx: Tx) -> list[tuple[Invitation, str]]:
        return await store.invitations_of_organization(tx, organization.id, now, after, asked.fetch)

    return page_of(await accounts.db.read_long(unit), asked, lambda row: (row[0].id,))


async def of_user(accounts: Accounts, user: User) -> list[tuple[Invitation, str]]:
    """By name, and by e-mail where the user has proven the address."""
    now, email = accounts.clock(), user.email if user.email_verified_at else None
    return await accounts.db.read_long(lambda tx: store.invitations_of_user(tx, user.id, email, now))


def require_addressed(invitation: Invitation, user: User) -> None:
    """One mailed to an address is good for whoever has the mail; one made out to a user is good for that user alone."""
    if invitation.user_id not in (None, user.id):
        raise Forbidden("This invitation is for another account. Sign in with that one.")


async def accept(accounts: Accounts, user: User, invitation: Invitation, actor: Actor) -> None:
    """The caller has seen to it that the user holds the link or is the one invited."""
    now = accounts.clock()
    require_addressed(invitation, user)

    async def unit(tx: Tx) -> None:
        organization = await account_store.organization(tx, invitation.org_id) if invitation.org_id else None
        if organization is None:
            raise NotFound(GONE)
        organization = await begin_joining(tx, organization, user)
        if not await store.take_invitation(tx, invitation.id, now):
            raise NotFound(GONE)
        if not await join(tx, organization, user, invitation.role, now):
            raise Conflict(f"You are a member of {organization.name} already.")
        await record_added(tx, organization, user, invitation.role, actor, now)

    await accounts.db.write(unit)


async def own(accounts: Accounts, user: User, invitation_id: str) -> Invitation:
    """An invitation from the user's own list; any other is as if it were not there."""
    invitation = await store.invitation_by_id(accounts.db, invitation_id, accounts.clock())
    if invitation is None:
        raise NotFound(GONE)
    by_address = user.email_verified_at is not None and invitation.email == user.email
    if invitation.user_id != user.id and not by_address:
        raise NotFound(GONE)
    return invitation


async def decline(accounts: Accounts, invitation: Invitation) -> None:
    now = accounts.clock()
    if not await accounts.db.write(lambda tx: store.take_invitation(tx, invitation.id, now)):
        raise NotFound(GONE)


async def revoke(accounts: Accounts, organization: Organization, invitation_id: str, actor: Actor) -> None:
    now = accounts.clock()

    async def unit(tx: Tx) -> None:
        await begin_as_admin(tx, organization, actor)
        invitation = await store.invitation_by_id(tx, invitation_id, now)
        if invitation is None or invitation.org_id != organization.id:
            raise NotFound(GONE)
        if not await store.take_invitation(tx, invitation_id, now):
            raise NotFound(GONE)
        invited = await account_store.user(tx, invitation.user_id) if invitation.user_id else None
        invitee = invited.name if invited else invitation.email
        text = f"withdrew the invitation of {invitee}"
        await record(tx, organization.id, Kind.ORG_REVOKE_INVITATION, text, actor, now, {"invitee": invitee})

    await accounts.db.write(unit)


async def _find(accounts: Accounts, invitee: str) -> tuple[User | None, str]:
    """Where to write to, and the user if it was a name; never the user behind an address, who is not given away."""
    if "@" in invitee:
        return None, check_field("invitee", check_email, invitee)
    if not invitee:
        raise FieldErrors({"invitee": "Type a user name or an e-mail address."})
    user = await account_store.user_by_name(accounts.db, invitee)
    if user is None or user.disabled_at is not None:
        raise FieldErrors({"invitee": f"There is no user {invitee}. Invite by e-mail instead."})
    return user, user.email


async def _member(tx: Tx, organization: Organization, user: User | None, email: str) -> str | None:
    """Who is invited, if a member by now. Admins see verified addresses of members, so this gives nobody away."""
    if user is not None:
        return user.name if await store.role_of(tx, organization.id, user.id) else None
    return await store.member_at(tx, organization.id, email)
