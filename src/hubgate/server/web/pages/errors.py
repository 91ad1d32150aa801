"""The title, the advice and the hint for app developers that an error page adds to the error's message."""

from urllib.parse import urlencode

from msgspec import Struct

from hubgate.server.errors import HubError, OutcomeUnknown, Unavailable
from hubgate.server.http.request import HubRequest
from hubgate.server.oauth.authorize.request import ShownError
from hubgate.server.oauth.cimd.documents import InvalidDocument
from hubgate.server.oauth.logout.request import LogoutError


class Advice(Struct, frozen=True):
    title: str
    text: str


_BY_STATUS = {
    400: Advice("Invalid request", "Go back and try again. If a link or an app sent you here, contact its developer."),
    401: Advice("Sign in first", "Sign in, then open this address again."),
    403: Advice("Not allowed", "Nothing was changed. If this is wrong, send the id below to the operator."),
    404: Advice("Not found", "Check the address, or go to the home page."),
    405: Advice("Not a page", "This address is for programs and forms. If you sent a form, go back and send it again."),
    408: Advice("Timed out", "Nothing was changed. Try again."),
    409: Advice("Changed by another request", "Go back, reload the page and check its current state."),
    413: Advice("Too large", "Nothing was changed. Send less data at once."),
    431: Advice("Too large", "Shorten the address or clear the cookies of this hub, then try again."),
    429: Advice("Too many requests", "Nothing was changed. Wait, then try again."),
    500: Advice("Something went wrong", "Try again. If the error persists, send the id below to the operator."),
    501: Advice("Not set up", "The operator can set this up."),
    503: Advice("Not available right now", "Nothing was changed. Wait {wait}, then reload this page."),
}
_OTHER = Advice("That did not work", "Nothing was changed. Go back, correct the form and try again.")
_SIGN_IN_STOPPED = Advice("Sign-in stopped", "Contact the app's developer.")
_SIGN_OUT_STOPPED = Advice("Sign-out stopped", "Sign out on the home page, or contact the app's developer.")
# Reloading the response to a form submits the form again.
_UNKNOWN = Advice("May have been saved", "Do not reload this page: the form could be saved twice. Go back instead.")


def advice_for(error: HubError) -> Advice:
    if isinstance(error, OutcomeUnknown):
        return _UNKNOWN
    if isinstance(error, LogoutError):
        return _SIGN_OUT_STOPPED
    if isinstance(error, (ShownError, InvalidDocument)):
        return _SIGN_IN_STOPPED
    advice = _BY_STATUS.get(error.status, _OTHER)
    if isinstance(error, Unavailable) and error.retry_after is not None:
        return Advice(advice.title, advice.text.format(wait=_wait(error.retry_after)))
    return advice


def developer_hint(request: HubRequest, error: HubError) -> tuple[str, str, str] | None:
    """Return a hint for the app's developer: text, link address, link text. None if the error is not about an app."""
    if not isinstance(error, (ShownError, InvalidDocument, LogoutError)):
        return None
    if request.is_explained:
        return "", f"/oauth/explain/{request.request_id}", "See what it sent"
    if error.client_id.startswith(("https://", "http://")):
        return "", f"/docs/cimd?{urlencode({'url': error.client_id})}", "Check its document"
    if isinstance(error, LogoutError) and error.about == "id_token_hint":
        return "Send an ID token that it got from this hub, or client_id:", "/docs/sign-in#sign-out", "Sign-out"
    known = error.client_id and error.code != "invalid_client"
    return "See its errors under" if known else "Check client_id under", "/settings/applications", "Apps you build"


def _wait(seconds: int) -> str:
    if seconds > 90:
        return f"{-(-seconds // 60)} minutes"
    return f"{seconds} second{'' if seconds == 1 else 's'}"
