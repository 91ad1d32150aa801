"""The checks on an authorization request, in order.

First the checks whose errors are shown on the hub's own page (`ShownError`), then those whose errors are returned to
the app (`RedirectedError`).
"""

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field

from hubgate.server.ids import is_id
from hubgate.server.oauth.apps.lookup import find_app
from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.authorize.request import (
    FORM_POST,
    QUERY,
    RESPONSE_MODES,
    AuthorizationRequest,
    RedirectedError,
    ReturnAddress,
    ShownError,
)
from hubgate.server.oauth.claims import PARAMETER as CLAIMS
from hubgate.server.oauth.claims import parse_claims
from hubgate.server.oauth.consent import store as consent_store
from hubgate.server.oauth.context import OAuth
from hubgate.server.oauth.errors import OAuthError
from hubgate.server.oauth.parameters import MAY_REPEAT
from hubgate.server.oauth.pkce import METHOD, is_challenge
from hubgate.server.oauth.redirects import is_web, matches
from hubgate.server.oauth.requested_scopes import known_scopes, offered_scopes_on, scopes_of
from hubgate.server.oauth.resource_indicators import PARAMETER as RESOURCE
from hubgate.server.oauth.resource_indicators import requested_resources
from hubgate.server.oauth.resource_names import is_local
from hubgate.server.oauth.resource_servers.lookup import find_servers, targets
from hubgate.server.oauth.resource_servers.model import ResourceServer

# All parameters that the checks read; any others are ignored.
PARAMETERS = frozenset(
    """
    claims client_id code_challenge code_challenge_method id_token_hint login_hint max_age nonce orgIds prompt
    redirect_uri resource response_mode response_type scope state
    """.split()  # noqa: SIM905
)
PROMPTS = frozenset({"none", "login", "consent", "select_account"})
LONGEST_STATE = 4096
LONGEST_LOGIN_HINT = 254
LONGEST_NONCE = 512
MAX_ORGANIZATIONS = 100


@dataclass
class Draft:
    """The values validated so far; a check relies only on the checks before it."""

    oauth: OAuth
    values: dict[str, list[str]]
    caller: str
    # The signed-in user.
    user_id: str | None
    app: App = field(init=False)
    return_address: ReturnAddress = field(init=False)
    redirect_uri_sent: bool = False
    scopes: tuple[str, ...] = ()
    organizations: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    servers: tuple[ResourceServer, ...] = ()
    challenge: str | None = None
    nonce: str | None = None
    prompt: frozenset[str] = frozenset()
    max_age: int | None = None
    expected_user: str | None = None
    login_hint: str = ""
    claims: str = ""

    def one(self, name: str) -> str | None:
        values = self.values.get(name)
        return values[0] or None if values else None

    def error_redirect(self, error: str, description: str, about: str = "") -> RedirectedError:
        return RedirectedError(self.return_address, error, description, about)


async def parse(oauth: OAuth, pairs: list[tuple[str, str]], caller: str, user_id: str | None) -> AuthorizationRequest:
    """Check a request. `caller` is an IP address, `user_id` the signed-in user."""
    values: dict[str, list[str]] = {}
    for name, value in pairs:
        values.setdefault(name, []).append(value)
    draft = Draft(oauth, values, caller, user_id)
    for check in CHECKS:
        await check(draft)
    return AuthorizationRequest(
        app=draft.app,
        return_address=draft.return_address,
        redirect_uri_sent=draft.redirect_uri_sent,
        scopes=draft.scopes,
        organizations=draft.organizations,
        resources=draft.resources,
        servers=draft.servers,
        challenge=draft.challenge,
        nonce=draft.nonce,
        prompt=draft.prompt,
        max_age=draft.max_age,
        login_hint=draft.login_hint,
        claims=draft.claims,
        expected_user=draft.expected_user,
    )


async def check_client(draft: Draft) -> None:
    for name in ("client_id", "redirect_uri"):
        if len(draft.values.get(name, [])) > 1:
            raise ShownError(
                f"Sign-in stopped: {name} was sent more than once. Nothing was shared.",
                code="invalid_request",
                client_id=draft.one("client_id") or "",
                about=name,
            )
    client_id = draft.one("client_id")
    if client_id is None:
        raise ShownError("Sign-in stopped: the app did not say who it is. Nothing was shared.", code="invalid_request")
    app = await find_app(draft.oauth, client_id, caller=draft.caller)
    if app is None:
        raise ShownError(
            "Sign-in stopped: this hub does not know the app that sent you. Nothing was shared.",
            code="invalid_client",
            client_id=client_id,
        )
    draft.app = app


async def check_redirect(draft: Draft) -> None:
    """Check the redirect URI, so that no code is sent to a stranger (attacks O1 to O6)."""
    app, given = draft.app, draft.one("redirect_uri")
    draft.redirect_uri_sent = given is not None
    if given is None and len(app.redirect_uris) == 1 and app.redirect_match == "exact":
        given = app.redirect_uris[0]
    if given is None or not matches(app.redirect_uris, given, app.redirect_match):
        raise ShownError(
            f"Sign-in stopped: {app.name[:60]} asked to send you to an address it has not registered. "
            "Nothing was shared. Contact the app's developer.",
            code="invalid_request",
            client_id=app.client_id,
        )
    states = draft.values.get("state", [])
    state = states[0] if len(states) == 1 and _is_short(states[0]) else None
    modes = draft.values.get("response_mode", [])
    posted = modes == [FORM_POST] and is_web(given)
    draft.return_address = ReturnAddress(given, state, FORM_POST if posted else QUERY, draft.oauth.base_url)


def _is_short(state: str) -> bool:
    """Whether `state` is within its limit, in bytes: it is percent-encoded in URLs, which proxies may truncate."""
    return len(state.encode()) <= LONGEST_STATE


async def check_duplicates(draft: Draft) -> None:
    for name, values in draft.values.items():
        if len(values) > 1 and name not in MAY_REPEAT:
            raise draft.error_redirect("invalid_request", f"{name[:60]} was sent more than once.", name)
    if not _is_short(draft.one("state") or ""):
        raise draft.error_redirect("invalid_request", f"state has more than {LONGEST_STATE:,} bytes.", "state")


async def check_response_type(draft: Draft) -> None:
    for name in ("request", "request_uri", "registration"):
        if draft.one(name) is not None:
            raise draft.error_redirect(
                f"{name}_not_supported", f"{name} is not supported. Send plain parameters.", name
            )
    kind = draft.one("response_type")
    if kind is None:
        raise draft.error_redirect("invalid_request", "response_type is missing. Send response_type=code.")
    if kind != "code":
        raise draft.error_redirect("unsupported_response_type", "Send response_type=code.")
    mode = draft.one("response_mode")
    if mode is not None and mode not in RESPONSE_MODES:
        message = f"response_mode must be one of {', '.join(RESPONSE_MODES)}."
        raise draft.error_redirect("invalid_request", message, "response_mode")
    if mode == FORM_POST and not is_web(draft.return_address.redirect_uri):
        message = "A browser can post only to http and https: leave out response_mode."
        raise draft.error_redirect("invalid_request", message, "response_mode")


async def check_pkce(draft: Draft) -> None:
    """Check PKCE, which is required for public apps; S256 only (attacks O7, O8)."""
    challenge, method = draft.one("code_challenge"), draft.one("code_challenge_method")
    if challenge is None:
        if method is not None:
            message = "code_challenge_method was sent without code_challenge."
            raise draft.error_redirect("invalid_request", message, "code_challenge_method")
        if draft.app.needs_pkce:
            raise draft.error_redirect(
                "invalid_request", "This app must use PKCE: send code_challenge and code_challenge_method=S256."
            )
        return
    if method != METHOD:
        raise draft.error_redirect("invalid_request", "Send code_challenge_method=S256: plain is not supported.")
    if not is_challenge(challenge):
        raise draft.error_redirect(
            "invalid_request", "code_challenge is not a base64url SHA-256 digest.", "code_challenge"
        )
    draft.challenge = challenge


async def check_scopes(draft: Draft) -> None:
    if draft.resources:
        # Checked by check_resources.
        return
    try:
        draft.scopes = known_scopes(draft.oauth, draft.app, draft.one("scope"))
    except OAuthError as refusal:
        raise draft.error_redirect("invalid_scope", refusal.message, refusal.about) from refusal


async def check_claims(draft: Draft) -> None:
    """Check `claims`. The scopes of requested claims are added to the request if the app may request them."""
    text = draft.one(CLAIMS)
    if text is None:
        return
    try:
        requested = parse_claims(text)
    except ValueError as error:
        raise draft.error_redirect("invalid_request", str(error), CLAIMS) from error
    allowed = scopes_of(draft.oauth, draft.app)
    draft.scopes = tuple(dict.fromkeys((*draft.scopes, *(name for name in requested.scopes if name in allowed))))
    draft.claims, draft.expected_user = requested.places, requested.subject


async def check_organizations(draft: Draft) -> None:
    """Parse `orgIds`. Existence and membership are not checked: an error would reveal both (attack O36)."""
    if draft.resources:
        # Organizations exist only on this hub, so a token for other servers has no access to them.
        return
    named = [part.strip() for value in draft.values.get("orgIds", []) for part in value.split(",")]
    draft.organizations = tuple(dict.fromkeys(filter(is_id, named)))[:MAX_ORGANIZATIONS]


async def check_resources(draft: Draft) -> None:
    """Check `resource`, and the scopes of a token for other servers, which has no powers on this hub."""
    oauth, named = draft.oauth, [value for value in draft.values.get(RESOURCE, []) if value]
    try:
        uris = requested_resources(named, oauth.base_url) or ()
        draft.servers = await find_servers(oauth, uris, draft.user_id, await _approved_servers(draft, uris))
    except OAuthError as refusal:
        raise draft.error_redirect("invalid_target", refusal.message, refusal.about) from refusal
    draft.resources = targets(uris, draft.servers)
    if not uris:
        return
    try:
        draft.scopes = offered_scopes_on(oauth, draft.app, draft.one("scope"), draft.servers, uris)
    except OAuthError as refusal:
        # Before the sign-in it is not known which server runs on the user's computer.
        if draft.user_id is not None or not any(map(is_local, uris)):
            raise draft.error_redirect("invalid_scope", refusal.message, refusal.about) from refusal


async def _approved_servers(draft: Draft, uris: Collection[str]) -> Collection[str] | None:
    """For a request without a page, the servers that the user has approved for the app: an app that was not approved
    must not learn which servers run on the user's computer (attack O83). None if that does not matter.
    """
    silent = "none" in (draft.one("prompt") or "").split()
    if draft.user_id is None or not silent or not any(map(is_local, uris)):
        return None
    consent = await consent_store.find(draft.oauth.db, draft.user_id, draft.app.client_id)
    return consent.resource_scopes.keys() if consent else ()


async def check_prompt(draft: Draft) -> None:
    """Check `prompt`, `max_age` and `nonce`."""
    words = frozenset((draft.one("prompt") or "").split())
    if words - PROMPTS:
        raise draft.error_redirect("invalid_request", f"prompt must be one of {', '.join(sorted(PROMPTS))}.", "prompt")
    if "none" in words and len(words) > 1:
        raise draft.error_redirect("invalid_request", "prompt=none cannot be combined with other values.", "prompt")
    draft.prompt = words
    age = draft.one("max_age")
    if age is not None:
        if not (age.isascii() and age.isdigit() and len(age) <= 10):
            raise draft.error_redirect("invalid_request", "max_age must be a number of seconds.", "max_age")
        draft.max_age = int(age)
    draft.nonce = draft.one("nonce")
    if draft.nonce is not None and len(draft.nonce) > LONGEST_NONCE:
        raise draft.error_redirect("invalid_request", f"nonce has more than {LONGEST_NONCE} characters.", "nonce")


async def check_hint(draft: Draft) -> None:
    name = draft.one("login_hint") or ""
    draft.login_hint = name if len(name) <= LONGEST_LOGIN_HINT else ""
    hint = draft.one("id_token_hint")
    if hint is not None:
        named = await draft.oauth.signer.verified_subject(hint, draft.oauth.base_url)
        if named is None:
            raise draft.error_redirect(
                "invalid_request", "id_token_hint is not an ID token of this hub.", "id_token_hint"
            )
        if draft.expected_user not in (None, named):
            raise draft.error_redirect("invalid_request", "id_token_hint and claims name different users.", CLAIMS)
        draft.expected_user = named


Check = Callable[[Draft], Awaitable[None]]

CHECKS: tuple[Check, ...] = (
    check_client,
    check_redirect,
    check_duplicates,
    check_response_type,
    check_pkce,
    check_resources,
    check_scopes,
    check_claims,
    check_organizations,
    check_prompt,
    check_hint,
)
