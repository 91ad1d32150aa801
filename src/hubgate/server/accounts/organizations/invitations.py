"""Invitations to an organization, by name or e-mail, and to the hub, by e-mail. Valid for seven days and one use."""

import secrets

from msgspec import Struct

from hubgate.server.accounts import store as account_store
from hubgate.server.accounts.account_locks import lock_account, require_current_credentials
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.emails import check_email
from hubgate.server.accounts.field_checks import check_field
from hubgate.server.accounts.limits import INVITATION_MAILS, INVITATIONS_BY_SENDER
from hubgate.server.accounts.model import Organization, User
from hubgate.server.accounts.organizations import store
from hubgate.server.accounts.organizations.locks import lock_organization_as_admin
from hubgate.server.accounts.organizations.members import join, lock_for_joining, record_added
from hubgate.server.accounts.organizations.model import Invitation
from hubgate.server.accounts.roles import Role
from hubgate.server.audit.model import Actor, EntryType
from hubgate.server.audit.record import record
from hubgate.server.clock import DAY
from hubgate.server.errors import Conflict, FieldErrors, Forbidden, NotFound
from hubgate.server.ids import new_id
from hubgate.server.mail import texts
from hubgate.server.paging import Page, PageRequest, page_of
from hubgate.server.secret import fingerprint
from hubgate.server.storage.database import Tx

LIFETIME = 7 * DAY
MAX_OPEN = 500
CURSOR = (str,)
GONE = "This invitation was already used or withdrawn, or has expired. Ask for a new one."


class OpenedInvitation(Struct, frozen=True):
    """An opened invitation, for its page. `organization` is None for an invitation to the hub."""

    invitation: Invitation
    organization: Organization | None


async def invite(accounts: Accounts, organization: Organization, invitee: str, role: Role, actor: Actor) -> None:
    """Invite a user by name, or an e-mail address, whether it has an account or not."""
    invitee, now = invitee.strip(), accounts.clock()
    user, recipient = await _find(accounts, invitee)
    email = None if user else recipient
    # The user's name as registered, not as the inviter spelled it.
    invitee_name = user.name if user else recipient
    secret = secrets.token_urlsafe(32)
    user_id = user.id if user else None
    invitation = Invitation(new_id(now), organization.id, email, user_id, role, actor.user_id, now, now + LIFETIME)

    async def unit(tx: Tx) -> None:
        if user is not None:
            await lock_account(tx, user)
        await lock_organization_as_admin(tx, organization, actor)
        if member := await _member_name(tx, organization, user, recipient):
            raise FieldErrors({"invitee": f"{member} is already a member."})
        # In the transaction, so that an invitation that fails for another reason does not count.
        if actor.user_id is not None:
            await accounts.limiter.require_in(tx, INVITATIONS_BY_SENDER, actor.user_id)
        await accounts.limiter.require_in(tx, INVITATION_MAILS, recipient)
        await store.drop_invitations_of_invitee(tx, organization.id, email, user_id)
        if await store.count_invitations(tx, organization.id, now) >= MAX_OPEN:
            raise FieldErrors({"invitee": f"{MAX_OPEN} invitations are open. Withdraw some first."})
        await store.add_invitation(tx, fingerprint(secret), invitation)
        link = accounts.link(f"/invitations/{secret}")
        await accounts.outbox.add(tx, texts.invited_to_organization(recipient, organization.name, actor.name, link))
        data = {"invitee": invitee_name, "role": role.label}
        text = f"invited {invitee_name} as {role.label}"
        await record(tx, organization.id, EntryType.ORG_INVITE_USER, text, actor, now, data)

    await accounts.db.write(unit)
    accounts.outbox.send_soon()


async def invite_to_hub(accounts: Accounts, email: str) -> str:
    """Mail an invitation to the hub and return its link; Conflict if sign-up is closed."""
    email = check_field("email", check_email, email)
    if accounts.signup == "closed":
        raise Conflict(
            "HUBGATE_SIGNUP is closed, so nobody could accept the invitation. Run: hubgate admin user create"
        )
    now, secret = accounts.clock(), secrets.token_urlsafe(32)
    invitation = Invitation(new_id(now), None, email, None, Role.READ, None, now, now + LIFETIME)
    link = accounts.link(f"/invitations/{secret}")

    async def unit(tx: Tx) -> None:
        if await account_store.user_by_email(tx, email):
            raise Conflict(f"{email} already has an account.")
        await store.drop_invitations_of_invitee(tx, None, email, None)
        await store.add_invitation(tx, fingerprint(secret), invitation)
        await accounts.outbox.add(tx, texts.invited_to_hub(email, link))

    await accounts.db.write(unit)
    accounts.outbox.send_soon()
    return link


async def open_link(accounts: Accounts, secret: str) -> OpenedInvitation:
    invitation = await store.invitation_by_key(accounts.db, fingerprint(secret), accounts.clock())
    if invitation is None:
        raise NotFound(GONE)
    if invitation.org_id is None:
        return OpenedInvitation(invitation, None)
    return OpenedInvitation(invitation, await account_store.organization(accounts.db, invitation.org_id))


async def of_organization(
    accounts: Accounts, organization: Organization, page: PageRequest
) -> Page[tuple[Invitation, str]]:
    """Invitations of an organization, oldest first, each with the name or address of the invitee."""
    now, after = accounts.clock(), page.last_shown()

    async def unit(tx: Tx) -> list[tuple[Invitation, str]]:
        return await store.invitations_of_organization(tx, organization.id, now, after, page.fetch_limit)

    return page_of(await accounts.db.read_long(unit), page, lambda row: (row[0].id,))


async def of_user(accounts: Accounts, user: User) -> list[tuple[Invitation, str]]:
    """Invitations of a user: by name, and by e-mail if the user's address is verified."""
    now, email = accounts.clock(), user.email if user.email_verified_at else None
    return await accounts.db.read_long(lambda tx: store.invitations_of_user(tx, user.id, email, now))


def require_invitee(invitation: Invitation, user: User) -> None:
    """Forbidden if the invitation is for another user. An invitation mailed to an address can be accepted by any
    user who has the link."""
    if invitation.user_id not in (None, user.id):
        raise Forbidden("This invitation is for another account. Sign in with that one.")


async def accept(accounts: Accounts, user: User, invitation: Invitation, actor: Actor) -> None:
    """Accept an invitation. The caller has checked that the user has the link or is the invitee."""
    now = accounts.clock()
    require_invitee(invitation, user)

    async def unit(tx: Tx) -> None:
        organization = await account_store.organization(tx, invitation.org_id) if invitation.org_id else None
        if organization is None:
            raise NotFound(GONE)
        organization = await lock_for_joining(tx, organization, user)
        # An intruder whom a password reset has shut out must not join with the account (attack O67).
        await require_current_credentials(tx, actor.user_id, actor.credentials_version)
        if not await store.use_invitation(tx, invitation.id, now):
            raise NotFound(GONE)
        if not await join(tx, organization, user, invitation.role, now):
            raise Conflict(f"You are already a member of {organization.name}.")
        await record_added(tx, organization, user, invitation.role, actor, now)

    await accounts.db.write(unit)


async def find_own(accounts: Accounts, user: User, invitation_id: str) -> Invitation:
    """An invitation from the user's list; NotFound for any other invitation."""
    invitation = await store.invitation_by_id(accounts.db, invitation_id, accounts.clock())
    if invitation is None:
        raise NotFound(GONE)
    by_address = user.email_verified_at is not None and invitation.email == user.email
    if invitation.user_id != user.id and not by_address:
        raise NotFound(GONE)
    return invitation


async def decline(accounts: Accounts, invitation: Invitation) -> None:
    now = accounts.clock()
    if not await accounts.db.write(lambda tx: store.use_invitation(tx, invitation.id, now)):
        raise NotFound(GONE)


async def withdraw(accounts: Accounts, organization: Organization, invitation_id: str, actor: Actor) -> None:
    now = accounts.clock()

    async def unit(tx: Tx) -> None:
        await lock_organization_as_admin(tx, organization, actor)
        invitation = await store.invitation_by_id(tx, invitation_id, now)
        if invitation is None or invitation.org_id != organization.id:
            raise NotFound(GONE)
        if not await store.use_invitation(tx, invitation_id, now):
            raise NotFound(GONE)
        invited = await account_store.user(tx, invitation.user_id) if invitation.user_id else None
        invitee = invited.name if invited else invitation.email
        text = f"withdrew the invitation for {invitee}"
        await record(tx, organization.id, EntryType.ORG_REVOKE_INVITATION, text, actor, now, {"invitee": invitee})

    await accounts.db.write(unit)


async def withdraw_all_by(tx: Tx, user: User, actor: Actor, reason: str, now: int) -> int:
    """Withdraw all invitations that a user sent, and record that in the audit logs; returns how many were open."""
    withdrawn = await store.drop_all_invitations_by(tx, user.id, now)
    for org_id, invitee in withdrawn:
        if org_id is not None:
            data = {"invitee": invitee, "reason": reason}
            text = f"withdrew the invitation for {invitee}"
            await record(tx, org_id, EntryType.ORG_REVOKE_INVITATION, text, actor, now, data)
    return len(withdrawn)


async def _find(accounts: Accounts, invitee: str) -> tuple[User | None, str]:
    """The user, if invited by name, and the address for the mail. An address is not resolved to its user, so that
    accounts are not revealed."""
    if "@" in invitee:
        return None, check_field("invitee", check_email, invitee)
    if not invitee:
        raise FieldErrors({"invitee": "Type a user name or an e-mail address."})
    user = await account_store.user_by_name(accounts.db, invitee)
    if user is None or user.disabled_at is not None:
        raise FieldErrors({"invitee": f"{invitee} is not a user. Invite by e-mail instead."})
    return user, user.email


async def _member_name(tx: Tx, organization: Organization, user: User | None, email: str) -> str | None:
    """The invitee's name, if already a member. Admins see verified addresses of members, so this reveals nothing."""
    if user is not None:
        return user.name if await store.role_of(tx, organization.id, user.id) else None
    return await store.member_name_by_email(tx, organization.id, email)
