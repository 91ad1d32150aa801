"""What was sent beside what is registered now, with what differs marked. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from hubgate.server.oauth.apps.model import App
from hubgate.server.oauth.authorize.rules import IGNORED_SCOPES
from hubgate.server.oauth.explain.model import Refusal
from hubgate.server.oauth.grants.registry import GRANTS
from hubgate.server.oauth.pkce import METHOD
from hubgate.server.oauth.redirects import ORIGIN, matches
from hubgate.server.scopes import parse_scopes

# A piece of text, and whether it differs.
Part = tuple[str, bool]
Text = tuple[Part, ...]

_AUTHORIZE, _TOKEN = "/oauth/authorize", "/oauth/token"
_PROOFS = {
    "basic": "client ID and secret, by Basic",
    "body": "client ID and secret, in the body",
    "id": "client ID alone",
    "": "nothing",
}


@dataclass(frozen=True)
class Line:
    """One thing that was asked about. Each side is a list of texts."""

    label: str
    sent: Sequence[Text]
    registered: Sequence[Text]

    @property
    def differs(self) -> bool:
        return any(marked for text in (*self.sent, *self.registered) for _, marked in text)


def compared(refusal: Refusal, app: App) -> list[Line]:
    lines = [_redirect_uri(refusal, app), _scope(refusal, app)]
    if refusal.endpoint == _AUTHORIZE:
        lines += [_one_of("response_type", refusal, ("code",)), _challenge(refusal, app)]
    else:
        lines.append(_proof(refusal, app))
    if refusal.endpoint == _TOKEN:
        lines += [_one_of("grant_type", refusal, tuple(GRANTS)), _verifier(refusal, app)]
    return [line for line in lines if line is not None]


def _redirect_uri(refusal: Refusal, app: App) -> Line | None:
    given = refusal.sent.values.get("redirect_uri")
    if refusal.endpoint not in (_AUTHORIZE, _TOKEN) or (given is None and refusal.endpoint == _TOKEN):
        return None
    label = "redirect_uri" + (", any path under" if app.redirect_match == ORIGIN else "")
    registered = list(app.redirect_uris)
    if not registered:
        return Line(label, [((given, False),)] if given else [_said("not sent")], [_said("none", marked=True)])
    if given is None:
        return Line(label, [_said("not sent", marked=len(registered) > 1)], [_said(uri) for uri in registered])
    if matches(registered, given, app.redirect_match):
        return Line(label, [_said(given)], [_said(uri) for uri in registered])
    nearest = max(registered, key=lambda uri: _shared(uri, given))
    sent, meant = _difference(given, nearest)
    return Line(label, [sent], [meant, *(_said(uri) for uri in registered if uri != nearest)])


def _difference(given: str, meant: str) -> tuple[Text, Text]:
    """Both with the part that differs marked: what lies between their common beginning and their common end."""
    begin = _shared(given, meant)
    rest = min(len(given), len(meant)) - begin
    end = min(_shared(given[::-1], meant[::-1]), rest)
    return _marked(given, begin, end), _marked(meant, begin, end)


def _shared(one: str, other: str) -> int:
    """How many characters they begin with alike."""
    pairs = zip(one, other, strict=False)
    return next((at for at, (left, right) in enumerate(pairs) if left != right), min(len(one), len(other)))


def _marked(text: str, begin: int, end: int) -> Text:
    stop = len(text) - end
    parts = ((text[:begin], False), (text[begin:stop], True), (text[stop:], False))
    return tuple(part for part in parts if part[0])


def _scope(refusal: Refusal, app: App) -> Line | None:
    given = refusal.sent.values.get("scope")
    if given is None:
        return None
    known = {*app.scopes, *app.extra_scopes, *IGNORED_SCOPES}
    sent = [((name, name not in known),) for name in parse_scopes(given)]
    return Line("scope", sent, [_said(name) for name in dict.fromkeys([*app.scopes, *app.extra_scopes])])


def _proof(refusal: Refusal, app: App) -> Line:
    proof = refusal.sent.proof
    with_secret = proof in ("basic", "body")
    wrong = with_secret is not app.confidential or (with_secret and refusal.error == "invalid_client")
    registered = "an app with a secret" if app.confidential else "an app without a secret"
    if with_secret and app.confidential and wrong:
        registered = "another secret"
    return Line("client authentication", [_said(_PROOFS.get(proof, proof), marked=wrong)], [_said(registered)])


def _challenge(refusal: Refusal, app: App) -> Line:
    sent = "code_challenge" in refusal.sent.names
    method = refusal.sent.values.get("code_challenge_method", "plain")
    wrong = method != METHOD if sent else app.needs_pkce
    said = f"code_challenge by {method}" if sent else "no code_challenge"
    registered = f"{'required' if app.needs_pkce else 'optional'}, {METHOD} only"
    return Line("PKCE", [_said(said, marked=wrong)], [_said(registered)])


def _verifier(refusal: Refusal, app: App) -> Line | None:
    if refusal.sent.values.get("grant_type") != "authorization_code":
        return None
    sent = "code_verifier" in refusal.sent.names
    said = "code_verifier" if sent else "no code_verifier"
    registered = "required" if app.needs_pkce else "if the code was asked for with a code_challenge"
    return Line("PKCE", [_said(said, marked=app.needs_pkce and not sent)], [_said(registered)])


def _one_of(name: str, refusal: Refusal, known: tuple[str, ...]) -> Line:
    given = refusal.sent.values.get(name)
    return Line(name, [_said(given or "not sent", marked=given not in known)], [_said(value) for value in known])


def _said(text: str, *, marked: bool = False) -> Text:
    return ((text, marked),)
