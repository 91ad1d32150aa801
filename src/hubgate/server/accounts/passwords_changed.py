"""Changing a password, and setting a new one through a mailed link; with what ends by it.

A new password ends every sign-in: sessions, and the tokens and codes of apps (attack O68). Where the address was never
verified, the account may have been created by a stranger, and all that was created with it ends (attack O67).
"""

from hubgate.server.accounts import store
from hubgate.server.accounts.checking import check_field
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.emails import check_email
from hubgate.server.accounts.ended import Ended
from hubgate.server.accounts.limits import RESET_MAILS
from hubgate.server.accounts.links import mailed
from hubgate.server.accounts.links import store as link_store
from hubgate.server.accounts.links.model import Link, Purpose
from hubgate.server.accounts.model import User, Visitor
from hubgate.server.accounts.organizations import store as org_store
from hubgate.server.accounts.password_again import hold_password, require_password
from hubgate.server.accounts.passwords import check_password, hash_password
from hubgate.server.accounts.sessions import browsers
from hubgate.server.accounts.sessions import store as session_store
from hubgate.server.accounts.sessions.model import LASTS, Session
from hubgate.server.accounts.tokens import store as token_store
from hubgate.server.clock import iso
from hubgate.server.errors import NotFound
from hubgate.server.mail import texts
from hubgate.server.storage.database import Tx


async def change(
    accounts: Accounts, user: User, current: str, new: str, visitor: Visitor, session: Session | None = None
) -> tuple[str, Ended]:
    """Ends every session; the value is for this browser's new cookie (attack O55). Its `session` is not counted."""
    check_field("new_password", check_password, new)
    known_hash = await require_password(accounts, user, "current_password", current)
    password_hash, now = await hash_password(new), accounts.clock()

    async def unit(tx: Tx) -> tuple[str, Ended]:
        await hold_password(tx, user, "current_password", known_hash)
        await store.set_password(tx, user.id, password_hash)
        # Whoever knew the old password may have a link waiting that would take the account over.
        await link_store.remove_of(tx, user.id, Purpose.CHANGE_EMAIL)
        await link_store.remove_of(tx, user.id, Purpose.RESET)
        ended = await _end_sign_ins(accounts, tx, user, now, session.id if session else "")
        if user.email_verified_at is not None:
            said = await _sign_ins_ended(tx, user, ended.listed(other=True), "other sessions")
            await _tell(accounts, tx, user, now, visitor, said)
        return await browsers.start(tx, user.id, visitor, now), ended

    outcome = await accounts.db.write(unit)
    accounts.outbox.hurry()
    return outcome


async def ask_reset(accounts: Accounts, email: str) -> None:
    """The same for every address; an unknown one gets no mail."""
    email = check_field("email", check_email, email)
    place = await accounts.limiter.take(RESET_MAILS, email)
    now = accounts.clock()

    async def unit(tx: Tx) -> None:
        user = await store.user_by_email(tx, email)
        if user is not None and user.disabled_at is None:
            await mail_reset(accounts, tx, user, now)
        else:
            # Saving takes most of the time, and time must not tell who has an account.
            await accounts.limiter.keep(tx, place)

    await accounts.db.write(unit)
    accounts.outbox.hurry()


async def mail_reset(accounts: Accounts, tx: Tx, user: User, now: int) -> str:
    """The link, which the operator's command line may show too."""
    secret = await mailed.make(tx, Link(Purpose.RESET, user.id, user.email), now)
    link = accounts.link(f"/reset/{secret}")
    await accounts.outbox.add(tx, texts.reset_password(user.email, link))
    return link


async def reset(accounts: Accounts, secret: str, new: str, visitor: Visitor) -> User:
    """The address is proven by it."""
    check_field("password", check_password, new)
    link = await mailed.look(accounts.db, secret, Purpose.RESET, accounts.clock())
    password_hash, now = await hash_password(new), accounts.clock()

    async def unit(tx: Tx) -> User:
        # Before anything else of the account: a confirmation at the same moment came before this, or is rejected.
        user = await store.hold_user(tx, link.user_id)
        await mailed.take(tx, secret, Purpose.RESET, now)
        if user is None or not await store.verify_email(tx, user.id, link.email, now):
            raise NotFound("This link belongs to an address the account no longer has.")
        await store.set_password(tx, user.id, password_hash)
        await link_store.remove_all(tx, user.id)
        if user.email_verified_at is None:
            said = _everything_ended((await _end_everything(accounts, tx, user, now)).listed())
        else:
            ended = await _end_sign_ins(accounts, tx, user, now)
            said = await _sign_ins_ended(tx, user, ended.listed(), "sessions")
        await _tell(accounts, tx, user, now, visitor, said)
        return user

    user = await accounts.db.write_long(unit)
    accounts.outbox.hurry()
    return user


async def _end_sign_ins(accounts: Accounts, tx: Tx, user: User, now: int, own_session: str = "") -> Ended:
    await store.count_up_credentials(tx, user.id)
    sessions = await session_store.count_others(tx, user.id, now - LASTS, own_session)
    await session_store.remove_all(tx, user.id)
    return Ended(sessions=sessions) + await accounts.end_app_sign_ins(tx, user.id, now)


async def _end_everything(accounts: Accounts, tx: Tx, user: User, now: int) -> Ended:
    """Repos and organizations stay: they are the account's content, and open it to nobody. Apps and webhooks of an
    organization with no other member end as the account's own do.
    """
    await store.count_up_credentials(tx, user.id)
    # What is being created in an organization right now is there before this goes on, or finds the new version.
    await org_store.begin_change_where_member(tx, user.id)
    sessions = await session_store.count_others(tx, user.id, now - LASTS, "")
    await session_store.remove_all(tx, user.id)
    tokens = await token_store.remove_all(tx, user.id)
    invitations = await org_store.drop_all_invitations_by(tx, user.id, now)
    own = Ended(sessions=sessions, personal_tokens=tokens, invitations=invitations)
    owners = [user.id, *await org_store.with_only_member(tx, user.id)]
    return own + await accounts.end_created(tx, user.id, owners, now)


async def _sign_ins_ended(tx: Tx, user: User, listed: str, sessions: str) -> str:
    ended = f"Ended: {listed}." if listed else f"No {sessions} or app tokens were active."
    match await token_store.count(tx, user.id):
        case 0:
            return ended
        case 1:
            return f"{ended} 1 personal token still works."
        case tokens:
            return f"{ended} {tokens} personal tokens still work."


def _everything_ended(listed: str) -> str:
    if not listed:
        return "This address is now confirmed."
    return f"This address was never confirmed before, so everything created until then ended: {listed}."


async def _tell(accounts: Accounts, tx: Tx, user: User, now: int, visitor: Visitor, ended: str) -> None:
    message = texts.password_changed(user.email, iso(now), visitor.ip, ended, accounts.link("/reset"))
    await accounts.outbox.add(tx, message)
