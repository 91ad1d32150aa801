"""Finds the caller of a request, before any handler runs.

Pages accept only the session cookie, files the cookie or a token, and all other surfaces only a token in the
Authorization header (attack O61). Programs fetch files with a token, pages that show a file with the cookie. File
content never runs in the hub's origin and other origins cannot read it: the cookie is Lax, and CORS responses do not
allow credentials.

The storage API accepts only its own short-lived tokens (`access/storage_tokens.py`), whose callers are those of the
tokens they were requested with; no other surface accepts them.

A public API route does not authenticate. Elsewhere a presented token must be valid: an invalid token is rejected even
where anonymous visitors are allowed, because its sender expects to be signed in.

The caller is read from the database for every request, so a revocation or role change applies to the next request.
"""

import base64
from collections.abc import Awaitable, Callable, Mapping
from functools import cached_property
from urllib.parse import unquote_to_bytes

from msgspec import Struct, field
from msgspec.structs import replace

from hubgate.server.access.actions import Action
from hubgate.server.access.caller import ANONYMOUS, Caller, share_key_of
from hubgate.server.access.storage_tokens import StorageToken, invalid_storage_token, read_storage_token
from hubgate.server.accounts.sessions import browser_sessions
from hubgate.server.accounts.sessions import store as session_store
from hubgate.server.accounts.tokens import limits_store, personal
from hubgate.server.accounts.tokens import store as token_store
from hubgate.server.accounts.tokens.text import TokenKind, read_token
from hubgate.server.clock import Clock
from hubgate.server.edge.routes import Route
from hubgate.server.errors import BadRequest, TokenForAnotherServer, Unauthorized
from hubgate.server.events import depth
from hubgate.server.http.cookies import SESSION, read_cookie
from hubgate.server.http.request import FORM_TYPE, HubRequest
from hubgate.server.http.surface import Surface
from hubgate.server.secret import ServerSecret
from hubgate.server.storage.background_writes import BackgroundWrites
from hubgate.server.storage.database import Database

# Existing clients compare this text to distinguish an invalid token from a missing repo.
BAD_CREDENTIAL = "Invalid credentials in Authorization header"

# Finds the caller of the token with this key; None if the token is not valid.
FindCaller = Callable[[bytes], Awaitable[Caller | None]]
ReadToken = Callable[[str], Awaitable[tuple[TokenKind, bytes] | None]]


class Guard(Struct, frozen=True, dict=True):
    db: Database
    clock: Clock
    secret: ServerSecret
    # For the kinds of tokens that other packages issue.
    find_by_kind: Mapping[TokenKind, FindCaller] = field(default_factory=dict)
    # Whether the public address is https, which determines the name of the session cookie.
    secure: bool = False
    # Finds the kind and key of a token that is a JWT.
    read_jwt: ReadToken | None = None

    @cached_property
    def background_writes(self) -> BackgroundWrites:
        return BackgroundWrites(self.db)

    async def __call__(self, request: HubRequest, route: Route | None) -> None:
        """Set the caller of a request. `route` is None for the 404 page."""
        caller = await self._caller(request, route)
        request.caller = caller
        request.job_caller.share_key = share_key_of(request)

    async def _caller(self, request: HubRequest, route: Route | None) -> Caller | None:
        """The caller; None on a public route that is not a page: credentials are not read there."""
        if route is None:
            return await self.session_caller(request)
        depth.set_depth(request.headers.get(depth.HEADER))
        query = request.scope["query_string"]
        if query and route.surface.rules.cors and _has_token_parameter(query):
            # A token in the URL leaks to logs, histories and referrers (RFC 9700, section 4.3.2; attack O47).
            raise BadRequest("Send the token in the Authorization header, not in the address.")
        if route.surface is Surface.PAGE:
            by_token = route.is_by_token(request)
            return await (self._hub_token_caller(request, Surface.API) if by_token else self.session_caller(request))
        if route.action is Action.HUB_PUBLIC:
            return None
        if route.surface is Surface.FILE and "authorization" not in request.headers:
            return await self.session_caller(request) if route.method == "GET" else ANONYMOUS
        if route.surface.rules.by_storage_token:
            return await self._storage_caller(request, self._open_storage_token(request))
        if route.accepts_body_token and request.content_type == FORM_TYPE:
            request.body_token = (await request.read_form()).get("access_token")
        find = self._token_caller if route.any_audience else self._hub_token_caller
        return await find(request, route.surface)

    async def session_caller(self, request: HubRequest) -> Caller:
        """The caller by session cookie. An expired cookie counts as anonymous."""
        cookie = read_cookie(request, SESSION, secure=self.secure)
        now = self.clock()
        found = await browser_sessions.find(self.db, cookie, now) if cookie else None
        if found is None:
            return ANONYMOUS
        person, session = found
        if browser_sessions.should_record_use(session, now):
            self.background_writes.start(
                session.id, lambda tx: session_store.record_use(tx, session.id, now, request.client_ip)
            )
        return Caller.with_session(person, session)

    async def caller_or_anonymous(self, request: HubRequest) -> Caller:
        """The caller by token, for public routes that show more to some callers; ANONYMOUS if the token is invalid."""
        try:
            return await self._hub_token_caller(request, Surface.API)
        except Unauthorized:
            return ANONYMOUS

    async def reload_caller(self, request: HubRequest) -> Caller:
        """Read the caller again, for a long-running request, such as a push that took an hour to receive."""
        return await self._hub_token_caller(request, Surface.GIT)

    async def reload_storage_caller(self, request: HubRequest) -> Caller:
        """Like `reload_caller`, for the storage API. A token that expired since the request began is still accepted."""
        return await self._storage_caller(request, storage_token_of(request))

    def credential_of(self, request: HubRequest) -> tuple[TokenKind, bytes] | None:
        """The kind and primary key of the token that a request presents; None without a token."""
        header = request.headers.get("authorization")
        return read_token(_token_in_header(header, Surface.API)) if header is not None else None

    def _open_storage_token(self, request: HubRequest) -> StorageToken:
        scheme, _, text = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            raise invalid_storage_token()
        request.state.storage_token = read_storage_token(text.strip(), self.secret, self.clock())
        return storage_token_of(request)

    async def _storage_caller(self, request: HubRequest, token: StorageToken) -> Caller:
        if token.credential is None:
            return ANONYMOUS
        caller = await self._caller_by_key(*token.credential, request.client_ip)
        if caller is None or (caller.app is not None and not caller.app.is_for_this_hub):
            raise invalid_storage_token()
        return caller

    async def _hub_token_caller(self, request: HubRequest, surface: Surface) -> Caller:
        """The caller by token. Rejects a token issued for another server, which could try it here (attack O64)."""
        caller = await self._token_caller(request, surface)
        if caller.app is not None and not caller.app.is_for_this_hub:
            raise TokenForAnotherServer(", ".join(caller.app.resource_names))
        return caller

    async def _token_caller(self, request: HubRequest, surface: Surface) -> Caller:
        header = request.headers.get("authorization")
        if header is None and not request.body_token:
            return ANONYMOUS
        if header is not None and request.body_token:
            # Otherwise a proxy and this hub could check different tokens (RFC 6750, section 2).
            raise BadRequest("Send the token once: in the Authorization header or in the body.")
        text = request.body_token if header is None else _token_in_header(header, surface)
        read = read_token(text)
        if read is None and self.read_jwt is not None:
            read = await self.read_jwt(text)
        caller = await self._caller_by_key(*read, request.client_ip) if read else None
        if caller is None:
            raise Unauthorized(BAD_CREDENTIAL)
        return caller

    async def _caller_by_key(self, kind: TokenKind, key: bytes, ip: str) -> Caller | None:
        if kind is TokenKind.PERSONAL:
            return await self._personal_token_caller(key, ip)
        find = self.find_by_kind.get(kind)
        return await find(key) if find else None

    async def _personal_token_caller(self, key: bytes, ip: str) -> Caller | None:
        now = self.clock()
        found = await token_store.find(self.db, key, now)
        if found is None:
            return None
        person, token = found
        if personal.should_record_use(token, now):
            self.background_writes.start(token.id, lambda tx: token_store.record_use(tx, token.id, now, ip))
        if token.is_fine_grained:
            token = replace(token, limits=await limits_store.find(self.db, person.user.id, token.id))
        return Caller.with_token(person, token)


def storage_token_of(request: HubRequest) -> StorageToken:
    """The storage token that the guard opened."""
    token: StorageToken = request.state.storage_token
    return token


def _has_token_parameter(query: bytes) -> bool:
    return any(unquote_to_bytes(pair.partition(b"=")[0]) == b"access_token" for pair in query.split(b"&"))


def _token_in_header(header: str, surface: Surface) -> str:
    scheme, _, value = header.partition(" ")
    value = value.strip()
    if scheme.lower() == "bearer":
        return value
    if scheme.lower() == "basic" and surface in (Surface.GIT, Surface.LFS, Surface.FILE):
        # git sends the token as password, or as user name if it has no password.
        try:
            user, _, password = base64.b64decode(value, validate=True).decode().partition(":")
        except ValueError:
            raise Unauthorized(BAD_CREDENTIAL) from None
        return password or user
    raise Unauthorized(BAD_CREDENTIAL)
