"""Compares a rejected request with the app's current registration and marks differences or the cause. Pure."""

from collections.abc import Sequence

from msgspec import Struct

from hubgate.server.errors import Unprocessable
from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.authorize.request import RESPONSE_MODES
from hubgate.server.oauth.authorize.rules import PROMPTS
from hubgate.server.oauth.explain.differences import Text, as_text, difference, nearest
from hubgate.server.oauth.explain.model import Refusal
from hubgate.server.oauth.grants.registry import grants_of
from hubgate.server.oauth.pkce import METHOD
from hubgate.server.oauth.redirects import ORIGIN, check_redirect_uri, is_loopback, matches, reserved_parameter_in
from hubgate.server.oauth.resource_indicators import PARAMETER as RESOURCE
from hubgate.server.scopes import IGNORED_SCOPES, parse_scopes

_AUTHORIZE, _TOKEN, _INTROSPECT = "/oauth/authorize", "/oauth/token", "/oauth/introspect"
_LOGOUT = "/oauth/logout"
_PROOFS = {
    "basic": "client ID and secret, with HTTP Basic",
    "body": "client ID and secret, in the body",
    "both": "client ID and secret, with HTTP Basic and in the body",
    "other": "an Authorization header other than Basic",
    "id": "client ID alone",
    "": "nothing",
}
_LOOPBACK_HINT = "localhost and 127.0.0.1 are different; the port does not matter."
# Allowed values of parameters that are not part of the registration.
_CHOICES = {"prompt": tuple(sorted(PROMPTS)), "response_mode": RESPONSE_MODES}


class Line(Struct, frozen=True):
    """One row of the comparison. Both sides are lists of texts. `covers` names the parameters that the row explains;
    `setting` is the field to edit in the app's settings.
    """

    label: str
    sent: Sequence[Text]
    registered: Sequence[Text]
    covers: tuple[str, ...] = ()
    setting: str = ""
    fix: str = ""

    @property
    def differs(self) -> bool:
        return any(marked for text in (*self.sent, *self.registered) for _, marked in text)


def compare(refusal: Refusal, app: App) -> list[Line]:
    if refusal.endpoint == _LOGOUT:
        return [_post_logout_redirect_uri(refusal, app)]
    lines = [_redirect_uri(refusal, app), _scope(refusal, app)]
    if refusal.endpoint == _AUTHORIZE:
        lines += [_one_of("response_type", refusal, ("code",)), _challenge(refusal, app)]
    else:
        lines.append(_proof(refusal, app))
    if refusal.endpoint == _TOKEN:
        lines += [_one_of("grant_type", refusal, grants_of(app)), _verifier(refusal, app)]
    found = [line for line in lines if line is not None]
    about = refusal.sent.about
    return found if not about or any(about in line.covers for line in found) else [*found, _other(refusal, about)]


def _redirect_uri(refusal: Refusal, app: App) -> Line | None:
    redeems = refusal.endpoint == _TOKEN and refusal.sent.values.get("grant_type") == "authorization_code"
    if not redeems and refusal.endpoint != _AUTHORIZE:
        return None
    given, registered = refusal.sent.values.get("redirect_uri"), app.redirect_uris
    label = "redirect_uri" + (" (any path)" if app.redirect_match == ORIGIN else "")
    plain = [as_text(uri) for uri in registered]

    def line(sent: Text, meant: Sequence[Text], fix: str = "") -> Line:
        return Line(label, [sent], meant, ("redirect_uri",), "redirectUris", fix)

    if refusal.sent.about == "redirect_uri":
        meant = as_text("the one in the authorization request" if redeems else "once")
        return Line(label, [as_text(given or "not sent", marked=True)], [meant], ("redirect_uri",))
    if not registered:
        fix = _fix(given, registered) if given else "Add a redirect URI, then send it."
        return line(as_text(given or "not sent"), [as_text("none", marked=True)], fix)
    if given is None:
        ambiguous = not redeems and (len(registered) > 1 or app.redirect_match == ORIGIN)
        return line(as_text("not sent", marked=ambiguous), plain, "Send a redirect_uri." if ambiguous else "")
    if matches(registered, given, app.redirect_match):
        return line(as_text(given), plain)
    if app.redirect_match == ORIGIN and (name := reserved_parameter_in(given)):
        return line(
            as_text(given, marked=True), plain, f"Remove {name} from its query: it is reserved for the response."
        )
    meant_uri = nearest(registered, given)
    sent, meant = difference(given, meant_uri, any_path=app.redirect_match == ORIGIN)
    return line(sent, [meant, *(as_text(uri) for uri in registered if uri != meant_uri)], _fix(given, registered))


def _post_logout_redirect_uri(refusal: Refusal, app: App) -> Line:
    name, registered = "post_logout_redirect_uri", app.post_logout_redirect_uris
    given = refusal.sent.values.get(name)
    marked = given is not None and not matches(registered, given)
    sent = as_text(given or "not sent", marked=marked)
    fix = f"Add {given} to the sign-out redirects." if marked else ""
    return Line(name, [sent], [as_text(uri) for uri in registered], (name,), "postLogoutRedirectUris", fix)


def _fix(given: str, registered: Sequence[str]) -> str:
    send = "send the registered one" if len(registered) == 1 else "send a registered one"
    hint = f" {_LOOPBACK_HINT}" if any(map(is_loopback, (given, *registered))) else ""
    try:
        check_redirect_uri(given)
    except Unprocessable as error:
        return f"{error.message} {send.capitalize()}.{hint}"
    return f"Add {given} to the redirect URIs{f', or {send}' if registered else ''}.{hint}"


def _scope(refusal: Refusal, app: App) -> Line | None:
    given = refusal.sent.values.get("scope")
    if given is None:
        return None
    allowed = tuple(dict.fromkeys([*app.scopes, *app.extra_scopes]))
    mark_all = refusal.sent.about == "scope"
    # Other servers have scopes of their own.
    known = {*allowed, *IGNORED_SCOPES, *(parse_scopes(given) if RESOURCE in refusal.sent.values else ())}
    sent = [as_text(name, marked=mark_all or name not in known) for name in parse_scopes(given)]
    return Line("scope", sent, [as_text(name) for name in allowed], ("scope",), "" if mark_all else "scopes")


def _proof(refusal: Refusal, app: App) -> Line:
    proof, registered = refusal.sent.proof, "an app with a secret" if app.confidential else "an app without a secret"
    with_secret = proof in ("basic", "body", "both")
    wrong = with_secret is not app.confidential or proof in ("both", "other")
    if refusal.sent.about in ("client_id", "client_secret"):
        wrong = True
    if with_secret and app.confidential and refusal.sent.about == "client_secret":
        registered = "another secret"
    if refusal.endpoint == _INTROSPECT and not app.confidential:
        wrong, registered = True, "an app without a secret, which may not introspect tokens"
    sent = as_text(_PROOFS.get(proof, proof), marked=wrong)
    return Line("client authentication", [sent], [as_text(registered)], ("client_id", "client_secret"))


def _challenge(refusal: Refusal, app: App) -> Line:
    sent, method = "code_challenge" in refusal.sent.names, refusal.sent.values.get("code_challenge_method")
    covers = ("code_challenge", "code_challenge_method")
    wrong = (method != METHOD if sent else app.needs_pkce) or refusal.sent.about in covers
    if sent:
        text = f"code_challenge with method {method}" if method else "code_challenge, no method sent (that means plain)"
    else:
        text = f"no code_challenge, but the method {method}" if method else "no code_challenge"
    registered = f"{'required' if app.needs_pkce else 'optional'}, {METHOD} only"
    return Line("PKCE", [as_text(text, marked=wrong)], [as_text(registered)], covers)


def _verifier(refusal: Refusal, app: App) -> Line | None:
    if refusal.sent.values.get("grant_type") != "authorization_code":
        return None
    sent, about = "code_verifier" in refusal.sent.names, refusal.sent.about == "code_verifier"
    text = "code_verifier" if sent else "no code_verifier"
    registered = "required" if app.needs_pkce else "if the code was requested with a code_challenge"
    wrong = about or (app.needs_pkce and not sent)
    return Line("PKCE", [as_text(text, marked=wrong)], [as_text(registered)], ("code_verifier",))


def _one_of(name: str, refusal: Refusal, known: tuple[str, ...]) -> Line:
    given = refusal.sent.values.get(name)
    wrong = given not in known or refusal.sent.about == name
    return Line(name, [as_text(given or "not sent", marked=wrong)], [as_text(value) for value in known], (name,))


def _other(refusal: Refusal, name: str) -> Line:
    """The line for the parameter in `about`, if no other line covers that parameter."""
    was_sent = name in refusal.sent.names or name in refusal.sent.values
    text = refusal.sent.values.get(name) or ("sent; its value is not stored" if was_sent else "not sent")
    return Line(
        name, [as_text(text, marked=True)], [as_text(value) for value in _CHOICES.get(name, ("see the error above",))]
    )
