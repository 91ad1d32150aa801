"""The title and advice that an error page adds to the error's message."""

from dataclasses import dataclass

from hubgate.server.errors import HubError, OutcomeUnknown, Unavailable


@dataclass(frozen=True)
class Advice:
    title: str
    cure: str


_BY_STATUS = {
    400: Advice(
        "We cannot act on this", "Go back and try again. If a link or an app sent you here, its maker has to mend it."
    ),
    401: Advice("Sign in first", "Sign in, then open this address again."),
    403: Advice("Not allowed", "Nothing was changed. If this is wrong, send the id below to whoever runs this hub."),
    404: Advice("Not found", "Check the address, or begin at the start page."),
    405: Advice(
        "Not a page", "Programs and forms use this address. If a form brought you here, go back and send it again."
    ),
    408: Advice("Too slow", "Nothing was changed. Send it again."),
    409: Advice("Changed meanwhile", "Go back, reload the page and look at what is there now."),
    413: Advice("Too large", "Nothing was changed. Send less at once."),
    431: Advice("Too large", "Shorten the address or clear the cookies of this hub, then try again."),
    429: Advice("Wait a little", "Nothing was changed. When the time is up, try again."),
    500: Advice("Our fault", "Try again. If it stays, send the id below to whoever runs this hub."),
    501: Advice("Not set up here", "Whoever runs this hub can set it up."),
    503: Advice("Not available right now", "Nothing was changed. Wait {wait}, then reload this page."),
}
_OTHER = Advice("That did not work", "Nothing was changed. Go back, change what you sent and try again.")
# Reloading the response to a form submits the form again.
_UNKNOWN = Advice("Perhaps saved", "Do not reload this page: that could save it twice. Go back instead.")


def advice_for(error: HubError) -> Advice:
    if isinstance(error, OutcomeUnknown):
        return _UNKNOWN
    advice = _BY_STATUS.get(error.status, _OTHER)
    if isinstance(error, Unavailable):
        return Advice(advice.title, advice.cure.format(wait=_wait(error.retry_after)))
    return advice


def _wait(seconds: int) -> str:
    if seconds > 90:
        return f"{-(-seconds // 60)} minutes"
    return f"{seconds} second{'' if seconds == 1 else 's'}"
