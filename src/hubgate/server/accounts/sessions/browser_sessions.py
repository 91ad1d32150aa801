"""Starts, finds and ends the sessions of browsers."""

import secrets
from collections.abc import Sequence

from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.model import Person, Visitor
from hubgate.server.accounts.sessions import store
from hubgate.server.accounts.sessions.model import MAX_SESSIONS_PER_USER, SESSION_LIFETIME, USE_RECORDED_EVERY, Session
from hubgate.server.ids import AFTER_ALL, new_id
from hubgate.server.paging import Page, PageRequest, page_of
from hubgate.server.secret import fingerprint
from hubgate.server.storage.database import Database, Tx

CURSOR = (str,)


async def start(tx: Tx, user_id: str, visitor: Visitor, now: int) -> str:
    """Start a session and return its cookie. The cookie is always new, which prevents session fixation (attack O55)."""
    cookie = secrets.token_urlsafe(32)
    session = Session(new_id(now), user_id, now, now, visitor.ip, visitor.user_agent)
    await store.add(tx, fingerprint(cookie), session)
    await store.remove_least_recent(tx, user_id, MAX_SESSIONS_PER_USER)
    return cookie


async def replace(tx: Tx, old: Session | None, user_id: str, visitor: Visitor, now: int) -> str:
    """Start a session at sign-in and end the browser's previous session, in case its cookie was stolen (attack O55)."""
    if old is not None:
        await store.remove(tx, old.user_id, old.id)
    return await start(tx, user_id, visitor, now)


async def find(db: Database, cookie: str, now: int) -> tuple[Person, Session] | None:
    return await store.find(db, fingerprint(cookie), now - SESSION_LIFETIME)


def should_record_use(session: Session, now: int) -> bool:
    return now - session.last_used_at >= USE_RECORDED_EVERY


async def of_user(accounts: Accounts, user_id: str) -> Sequence[Session]:
    """All sessions of a user, most recently used first."""
    used_after = accounts.clock() - SESSION_LIFETIME
    return await accounts.db.read_long(lambda tx: store.of_user(tx, user_id, used_after))


async def page_of_user(accounts: Accounts, user_id: str, page: PageRequest) -> Page[Session]:
    """A page of a user's sessions, newest first."""
    used_after, before = accounts.clock() - SESSION_LIFETIME, page.last_shown(AFTER_ALL)

    async def unit(tx: Tx) -> Sequence[Session]:
        return await store.page_of_user(tx, user_id, used_after, before, page.fetch_limit)

    return page_of(await accounts.db.read_long(unit), page, lambda session: (session.id,))


async def end(accounts: Accounts, user_id: str, session_id: str) -> bool:
    """End a session; False if the user does not have it."""
    return await accounts.db.write(lambda tx: store.remove(tx, user_id, session_id))


async def end_others(accounts: Accounts, user_id: str, current_id: str) -> int:
    """End all sessions except the current session; returns how many."""
    return await accounts.db.write(lambda tx: store.remove_others(tx, user_id, current_id))
