"""Which token goes with a call: one that was given, or the stored one, refreshed before it ends."""

from dataclasses import replace

from hubgate.client.errors import HubgateError, NotSignedIn, SignInFailed, UnexpectedAnswer
from hubgate.client.models import Token
from hubgate.client.operations import oauth
from hubgate.client.session import Session
from hubgate.client.store import Kept, SignedIn, Store, locked, with_hub
from hubgate.client.wire import Flow, work

_DAY = 86_400.0
ENDED = "sign-in expired. Run: hubgate login"


def checked_token(token: str) -> str:
    text = token.strip()
    if not text or not text.isascii() or not text.isprintable() or " " in text:
        # In a header a line break would begin another one.
        raise ValueError("This is no token: it has other characters than printable ASCII, or none.")
    return text


class Given:
    """None is anonymous."""

    def __init__(self, token: str | None) -> None:
        self._token = None if token is None else checked_token(token)

    def current(self, _: Session) -> Flow[str | None]:
        yield from ()
        return self._token

    def renewed(self, _: Session, __: str) -> Flow[str | None]:
        yield from ()
        return None


class Stored:
    """Of the session's own hub and no other: sign-ins are filed by origin."""

    def __init__(self, store: Store, kept: SignedIn | None = None) -> None:
        self._store = store
        self._kept = kept
        # A refresh token the hub has refused is not shown again.
        self._refused = ""

    def current(self, session: Session) -> Flow[str | None]:
        if self._kept is None:
            self._kept = (yield from work(self._store.load)).hubs.get(session.endpoint)
            if self._kept is None:
                return None
        kept, now = self._kept, session.clock()
        if not _is_ending(kept, now) or kept.refresh_token in ("", self._refused):
            if kept.expires_at and kept.expires_at <= now:
                raise NotSignedIn(ENDED, status=401)
            return kept.access_token
        try:
            return (yield from self._refreshed(session, kept.access_token))
        except HubgateError:
            # As long as the old one is good, a hub that cannot refresh right now disturbs nobody.
            if kept.expires_at > now:
                return kept.access_token
            raise

    def renewed(self, session: Session, refused: str) -> Flow[str | None]:
        return (yield from self._refreshed(session, refused))

    def _refreshed(self, session: Session, old: str) -> Flow[str]:
        """A token other than the old one. Under the lock: of two processes the second finds the work done."""
        lock = self._store.lock()
        yield from locked(lock)
        try:
            everything = yield from work(self._store.load)
            kept = everything.hubs.get(session.endpoint)
            if kept is None:
                raise NotSignedIn("not signed in. Run: hubgate login", status=401)
            if kept.access_token == old:
                kept = yield from self._next(session, everything, kept)
            self._kept = kept
            return kept.access_token
        finally:
            lock.release()

    def _next(self, session: Session, everything: Kept, kept: SignedIn) -> Flow[SignedIn]:
        if kept.refresh_token in ("", self._refused):
            raise NotSignedIn(ENDED, status=401)
        try:
            token = yield from oauth.refresh(session, kept.client_id, kept.refresh_token)
        except SignInFailed as error:
            self._refused = kept.refresh_token
            raise NotSignedIn(ENDED, status=401) from error
        fresh = signed_in(token, session.clock(), kept.client_id, kept.name)
        # A hub may keep the refresh token (RFC 6749, section 6).
        fresh = fresh if fresh.refresh_token else replace(fresh, refresh_token=kept.refresh_token)
        after = replace(everything, hubs=with_hub(everything, session.endpoint, fresh).hubs)
        yield from work(lambda: self._store.save(after))
        return fresh


def signed_in(token: Token, now: float, client_id: str, name: str) -> SignedIn:
    try:
        access_token = checked_token(token.access_token)
    except ValueError:
        raise UnexpectedAnswer("The hub gave a token that is none.") from None
    return SignedIn(
        access_token=access_token,
        refresh_token=token.refresh_token,
        expires_at=now + token.expires_in if token.expires_in else 0.0,
        issued_at=now,
        client_id=client_id,
        scope=token.scope,
        name=name,
    )


def _is_ending(kept: SignedIn, now: float) -> bool:
    """In its last day, or the last tenth of a short life: not at every start, and not only when it is too late."""
    if not kept.expires_at:
        return False
    return kept.expires_at - now < min(_DAY, (kept.expires_at - kept.issued_at) / 10)
