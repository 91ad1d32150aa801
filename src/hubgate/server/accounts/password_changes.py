"""Password changes and resets, and what they revoke.

A new password revokes all sessions, and the tokens and codes of all apps (attack O68). If the address was never
verified, the account may have been created by a stranger, so everything created with it is revoked (attack O67).
"""

from collections.abc import Sequence

from hubgate.server.accounts import store
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.emails import check_email
from hubgate.server.accounts.field_checks import check_field
from hubgate.server.accounts.limits import RESET_MAILS
from hubgate.server.accounts.links import mailed_links
from hubgate.server.accounts.links import store as link_store
from hubgate.server.accounts.links.model import Link, Purpose
from hubgate.server.accounts.model import RevokedCounts, User, Visitor
from hubgate.server.accounts.organizations import invitations, members
from hubgate.server.accounts.organizations import store as org_store
from hubgate.server.accounts.passwords import check_password, hash_password, lock_password, require_password
from hubgate.server.accounts.sessions import browser_sessions
from hubgate.server.accounts.sessions import store as session_store
from hubgate.server.accounts.sessions.model import SESSION_LIFETIME, Session
from hubgate.server.accounts.tokens import store as token_store
from hubgate.server.audit.model import Actor
from hubgate.server.clock import iso
from hubgate.server.errors import NotFound
from hubgate.server.mail import texts
from hubgate.server.storage.database import Tx

# The reason recorded in the audit logs of organizations.
NEVER_CONFIRMED = "Password reset; the address of this account had never been confirmed."


async def change(
    accounts: Accounts, user: User, current: str, new: str, visitor: Visitor, session: Session | None = None
) -> tuple[str, RevokedCounts]:
    """Change the password and end every session; returns the new session cookie for this browser (attack O55) and the
    counts of revoked items, which do not include the current `session`."""
    check_field("new_password", check_password, new)
    known_hash = await require_password(accounts, user, "current_password", current)
    password_hash, now = await hash_password(new), accounts.clock()

    async def unit(tx: Tx) -> tuple[str, RevokedCounts]:
        await lock_password(tx, user, "current_password", known_hash)
        await store.set_password(tx, user.id, password_hash)
        # Someone who knew the old password may have requested a link that would take the account over.
        await link_store.remove_by_purpose(tx, user.id, Purpose.CHANGE_EMAIL)
        await link_store.remove_by_purpose(tx, user.id, Purpose.RESET)
        revoked = await _revoke_sign_ins(accounts, tx, user, now, session.id if session else "")
        if user.email_verified_at is not None:
            text = await _revoked_sign_ins_text(tx, user, revoked.summary(other_sessions=True), "other sessions")
            await _notify_user(accounts, tx, user, now, visitor, text)
        return await browser_sessions.start(tx, user.id, visitor, now), revoked

    outcome = await accounts.db.write(unit)
    accounts.outbox.send_soon()
    return outcome


async def request_reset(accounts: Accounts, email: str) -> None:
    """Request a reset link. The response is the same for every address; an unknown address gets no mail."""
    email = check_field("email", check_email, email)
    hit = await accounts.limiter.take(RESET_MAILS, email)
    now = accounts.clock()

    async def unit(tx: Tx) -> None:
        found = await store.user_by_email(tx, email)
        # The account may be deleted or disabled concurrently, or get another address.
        user = await store.lock_user(tx, found.id) if found is not None else None
        if user is not None and user.disabled_at is None and user.email == email:
            await mail_reset(accounts, tx, user, now)
        else:
            # A write takes most of the time, and timing must not reveal who has an account.
            await accounts.limiter.touch(tx, hit)

    await accounts.db.write(unit)
    accounts.outbox.send_soon()


async def mail_reset(accounts: Accounts, tx: Tx, user: User, now: int) -> str:
    """Mail a reset link, and return it for the operator's command line."""
    secret = await mailed_links.create(tx, Link(Purpose.RESET, user.id, user.email), now)
    link = accounts.link(f"/reset/{secret}")
    await accounts.outbox.add(tx, texts.reset_password(user.email, link))
    return link


async def reset(accounts: Accounts, secret: str, new: str, visitor: Visitor) -> User:
    """Set a new password through a mailed link, which also verifies the address."""
    check_field("password", check_password, new)
    link = await mailed_links.find(accounts.db, secret, Purpose.RESET, accounts.clock())
    password_hash, now = await hash_password(new), accounts.clock()

    async def unit(tx: Tx) -> User:
        # Lock the user first: a concurrent confirmation either commits before this or is rejected.
        user = await store.lock_user(tx, link.user_id)
        await mailed_links.use(tx, secret, Purpose.RESET, now)
        if user is None or not await store.verify_email(tx, user.id, link.email, now):
            raise NotFound("This link is for an address that the account no longer uses.")
        await store.set_password(tx, user.id, password_hash)
        await link_store.remove_all(tx, user.id)
        if user.email_verified_at is None:
            text = await _revoke_everything(accounts, tx, user, visitor, now)
        else:
            revoked = await _revoke_sign_ins(accounts, tx, user, now)
            text = await _revoked_sign_ins_text(tx, user, revoked.summary(), "sessions")
        await _notify_user(accounts, tx, user, now, visitor, text)
        return user

    user = await accounts.db.write_long(unit)
    accounts.outbox.send_soon()
    return user


async def _revoke_sign_ins(accounts: Accounts, tx: Tx, user: User, now: int, own_session: str = "") -> RevokedCounts:
    await store.increment_credentials_version(tx, user.id)
    sessions = await session_store.count_others(tx, user.id, now - SESSION_LIFETIME, own_session)
    await session_store.remove_all(tx, user.id)
    return RevokedCounts(sessions=sessions) + await accounts.revoke_app_sign_ins(tx, user.id, now)


async def _revoke_everything(accounts: Accounts, tx: Tx, user: User, visitor: Visitor, now: int) -> str:
    """Revoke everything that a stranger may have created; returns the text for the mail.

    Repos stay, and so do organizations without other members: they grant no one else access to the account. Apps and
    webhooks of such organizations are deleted like the account's own. The user leaves all other organizations: a
    stranger may have created them or added members. The only admin of an organization stays, and the mail asks them
    to check its members. The audit logs of organizations record the revocations there.
    """
    actor = Actor(user.name, user.id, visitor.ip, visitor.user_agent)
    await store.increment_credentials_version(tx, user.id)
    # A concurrent change of an organization either commits before this point or fails because of the new version.
    await org_store.lock_organizations_of(tx, user.id)
    sessions = await session_store.count_others(tx, user.id, now - SESSION_LIFETIME, "")
    await session_store.remove_all(tx, user.id)
    tokens = await token_store.remove_all(tx, user.id)
    withdrawn = await invitations.withdraw_all_by(tx, user, actor, NEVER_CONFIRMED, now)
    owners = [user.id, *await org_store.ids_with_only_member(tx, user.id)]
    left, remaining = await members.leave_shared(tx, user, actor, NEVER_CONFIRMED, now)
    own = RevokedCounts(
        sessions=sessions,
        personal_tokens=tokens,
        invitations=withdrawn,
        memberships=len(left),
        redirects=await accounts.unlink_redirects(tx, owners, actor, NEVER_CONFIRMED, now),
    )
    revoked = own + await accounts.revoke_apps_and_webhooks(tx, user.id, owners, actor, NEVER_CONFIRMED, now)
    return _revoked_everything_text(revoked.summary(), left, remaining)


async def _revoked_sign_ins_text(tx: Tx, user: User, summary: str, sessions_label: str) -> str:
    revoked_text = f"Revoked: {summary}." if summary else f"No {sessions_label} or app tokens were active."
    match await token_store.count(tx, user.id):
        case 0:
            return revoked_text
        case 1:
            return f"{revoked_text} 1 personal token still works."
        case tokens:
            return f"{revoked_text} {tokens} personal tokens still work."


def _revoked_everything_text(summary: str, left: Sequence[str], remaining: Sequence[str]) -> str:
    sentences = ["This address is now confirmed."]
    if summary:
        sentences = [f"This address had never been confirmed, so everything created earlier was revoked: {summary}."]
    if left:
        sentences.append(f"You left {', '.join(left)}. If you belong there, ask for an invitation.")
    if remaining:
        names = ", ".join(remaining)
        sentences.append(f"You are still the only admin of {names}. Check who the other members are.")
    return " ".join(sentences)


async def _notify_user(accounts: Accounts, tx: Tx, user: User, now: int, visitor: Visitor, revoked_text: str) -> None:
    message = texts.password_changed(user.email, iso(now), visitor.ip, revoked_text, accounts.link("/reset"))
    await accounts.outbox.add(tx, message)
