"""Sign-up: open, by invitation, by the operator, and through the set-up link, which creates the first operator."""

import asyncio
import base64
import hmac

from msgspec import Struct

from hubgate.server.accounts import store
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.emails import check_email
from hubgate.server.accounts.field_checks import FieldChecks, check_fullname
from hubgate.server.accounts.limits import JOIN_MAILS, SIGN_UPS_FROM_ADDRESS, network_of
from hubgate.server.accounts.links import mailed_links
from hubgate.server.accounts.links.model import Link, Purpose
from hubgate.server.accounts.model import User
from hubgate.server.accounts.names import check_name, name_taken_message
from hubgate.server.accounts.organizations import invitations
from hubgate.server.accounts.organizations import store as org_store
from hubgate.server.accounts.organizations.invitations import OpenedInvitation
from hubgate.server.accounts.organizations.model import Invitation
from hubgate.server.accounts.passwords import check_password, hash_password
from hubgate.server.accounts.search_documents import document_of
from hubgate.server.errors import Conflict, FieldErrors, Forbidden, NotFound
from hubgate.server.ids import new_id
from hubgate.server.mail import texts
from hubgate.server.search import store as search_store
from hubgate.server.storage.database import Tx

OPERATOR_EXISTS = "operator"
_SETUP = "setup link"


class Candidate(Struct, frozen=True):
    """The data of a new user. The password is empty if the user will set it through a mailed link."""

    name: str
    email: str
    password: str
    fullname: str = ""


class _EmailTaken(Exception):
    """The address already has an account; raised to roll back the claim on the name."""


async def check_candidate(accounts: Accounts, name: str, email: str, password: str) -> Candidate:
    """Validate the fields of the sign-up form. User names are public, so a taken name is reported too; whether the
    address has an account is not."""
    checks = FieldChecks()
    candidate = Candidate(
        checks.check("username", check_name, name),
        checks.check("email", check_email, email),
        checks.check("password", check_password, password),
    )
    if checks.is_valid("username") and await store.name_was_claimed(accounts.db, name):
        checks.add_error("username", name_taken_message(name))
    checks.raise_errors()
    return candidate


async def join(accounts: Accounts, candidate: Candidate, ip: str, invitation: Invitation | None = None) -> User | None:
    """Create a user; None if the address already has an account: its owner is notified by mail, the visitor is not.

    An invitation admits one person: an invitation to the hub is used up, an invitation to an organization is assigned
    to the new user. An invitation verifies the address that it was mailed to.
    """
    sign_up = await accounts.limiter.take(SIGN_UPS_FROM_ADDRESS, network_of(ip))
    mail = await accounts.limiter.take(JOIN_MAILS, candidate.email)
    # Also for a known address, so that timing does not reveal it: hashing takes most of the response time.
    password_hash = await hash_password(candidate.password)
    proven = invitation is not None and invitation.email == candidate.email
    try:
        return await _create(accounts, candidate, password_hash, verified=proven, invitation=invitation)
    except FieldErrors:
        # The name was claimed concurrently. Nothing was mailed, so nothing counts.
        await asyncio.gather(accounts.limiter.refund(sign_up), accounts.limiter.refund(mail))
        raise
    except _EmailTaken:
        message = texts.address_already_registered(candidate.email, accounts.link("/reset"))
        await accounts.db.write(lambda tx: accounts.outbox.add(tx, message))
        return None
    finally:
        accounts.outbox.send_soon()


def require_open(accounts: Accounts, invitation: Invitation | None) -> None:
    if accounts.signup == "invite" and invitation is None:
        raise Forbidden("You need an invitation to join this hub. Open the link in the invitation mail.")
    if accounts.signup == "closed":
        raise Forbidden("This hub does not accept new accounts. Contact the operator.")


async def open_signup_invitation(accounts: Accounts, secret: str) -> OpenedInvitation:
    """Open an invitation that was mailed to an address. An invitation to an existing user cannot be used to join."""
    opened = await invitations.open_link(accounts, secret)
    if opened.invitation.email is None:
        raise NotFound(invitations.GONE)
    return opened


async def create_by_operator(accounts: Accounts, candidate: Candidate, *, verified: bool, operator: bool) -> User:
    """Create a user regardless of the sign-up setting. Without a password, the user sets it through the reset page."""
    checks = FieldChecks()
    candidate = Candidate(
        checks.check("username", check_name, candidate.name),
        checks.check("email", check_email, candidate.email),
        checks.check("password", check_password, candidate.password) if candidate.password else "",
        checks.check("fullname", check_fullname, candidate.fullname),
    )
    checks.raise_errors()
    password_hash = await hash_password(candidate.password) if candidate.password else None
    try:
        return await _create(accounts, candidate, password_hash, verified=verified, operator=operator)
    except FieldErrors as error:
        raise Conflict(error.message) from None
    except _EmailTaken:
        raise Conflict(f"{candidate.email} already has an account.") from None
    finally:
        accounts.outbox.send_soon()


def setup_path(accounts: Accounts) -> str:
    """The path of the set-up link: a MAC under the server's key, so it is the same in every process. Valid until the
    first operator exists."""
    mac = accounts.secret.mac(_SETUP, b"")
    return f"/setup/{base64.urlsafe_b64encode(mac).rstrip(b'=').decode()}"


async def setup_is_open(accounts: Accounts) -> bool:
    return not await store.milestone_reached(accounts.db, OPERATOR_EXISTS)


async def require_setup_link(accounts: Accounts, secret: str) -> None:
    matches = hmac.compare_digest(f"/setup/{secret}".encode(), setup_path(accounts).encode())
    if not matches or not await setup_is_open(accounts):
        raise NotFound(
            "This set-up link is invalid or was already used. Sign in, or create another operator: "
            "hubgate admin user create NAME --email ADDRESS --operator"
        )


async def create_first_operator(accounts: Accounts, candidate: Candidate) -> User:
    """Create the first operator. The caller has checked the link; of several concurrent calls, one wins."""
    password_hash = await hash_password(candidate.password)
    try:
        return await _create(accounts, candidate, password_hash, verified=False, operator=True, first=True)
    except _EmailTaken:
        raise FieldErrors({"email": "This address already has an account."}) from None
    finally:
        accounts.outbox.send_soon()


async def _create(
    accounts: Accounts,
    candidate: Candidate,
    password_hash: str | None,
    *,
    verified: bool,
    operator: bool = False,
    first: bool = False,
    invitation: Invitation | None = None,
) -> User:
    now = accounts.clock()
    user = User(
        id=new_id(now),
        name=candidate.name,
        fullname=candidate.fullname,
        email=candidate.email,
        email_verified_at=now if verified else None,
        website="",
        operator=int(operator),
        can_pay=0,
        created_at=now,
        disabled_at=None,
    )

    async def unit(tx: Tx) -> User:
        if operator and not await store.record_milestone(tx, OPERATOR_EXISTS, now) and first:
            raise NotFound("This set-up link was just used by someone else.")
        if not await store.claim_name(tx, user.name, "user", user.id, user.created_at):
            raise FieldErrors({"username": name_taken_message(user.name)})
        if not await store.add_user(tx, user, password_hash):
            raise _EmailTaken
        await search_store.put(tx, document_of(user))
        if invitation is not None and not await _use_invitation(tx, invitation, user, now):
            raise NotFound(invitations.GONE)
        if not verified:
            await mail_confirmation(accounts, tx, user, now)
        return user

    return await accounts.db.write(unit)


async def _use_invitation(tx: Tx, invitation: Invitation, user: User, now: int) -> bool:
    if invitation.org_id is None:
        return await org_store.use_invitation(tx, invitation.id, now)
    return await org_store.assign_invitation(tx, invitation.id, user.id, now)


async def mail_confirmation(accounts: Accounts, tx: Tx, user: User, now: int) -> None:
    secret = await mailed_links.create(tx, Link(Purpose.VERIFY, user.id, user.email), now)
    await accounts.outbox.add(tx, texts.confirm_address(user.email, accounts.link(f"/verify/{secret}")))
