"""`/operator/mail`: how mail is sent, how much waits, and a test mail to the operator's own address."""

from typing import Any
from urllib.parse import urlsplit

from hubgate.server.access.caller import caller_of
from hubgate.server.accounts import operator_actions
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.limits import TEST_MAILS
from hubgate.server.edge.routes import Route
from hubgate.server.errors import BadGateway, HubError, TooManyRequests
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.mail.trial import send_test
from hubgate.server.web.pages.operator.frame import OperatorPages, operator_route

_PATH = "/operator/mail"


def routes(frame: OperatorPages, accounts: Accounts) -> list[Route]:
    settings = frame.pages.settings
    server = _server_of(settings.smtp_url)
    folder = settings.data_dir.absolute() / "mail"

    async def show_page(request: HubRequest, error: HubError | None = None) -> Response:
        values: dict[str, Any] = {
            "server": server,
            "folder": folder,
            "sender": accounts.outbox.sender,
            "counts": await operator_actions.count_accounts(accounts),
        }
        if error is not None:
            return await frame.show_errors(request, "mail.html", _PATH, error, "form", **values)
        return await frame.page(request, "mail.html", _PATH, **values)

    async def show(request: HubRequest) -> Response:
        return await show_page(request)

    async def send(request: HubRequest) -> Response:
        recipient = caller_of(request).user.email
        try:
            await accounts.limiter.take(TEST_MAILS, recipient)
        except TooManyRequests as error:
            return await show_page(request, error)
        failure = await send_test(accounts.outbox, recipient)
        if failure:
            return await show_page(request, BadGateway(f"The test was not sent: {failure}."))
        sent = f"{server} accepted the test to {recipient}." if server else f"Wrote the test to {folder}."
        return frame.pages.redirect(_PATH, sent)

    return [
        operator_route("GET", _PATH, show, "How mail is sent"),
        operator_route("POST", f"{_PATH}/test", send, "Send a test mail to yourself"),
    ]


def _server_of(smtp_url: str) -> str:
    """The mail server's scheme, host and port. The user and the password are not shown."""
    if not smtp_url:
        return ""
    parts = urlsplit(smtp_url)
    port = parts.port or (465 if parts.scheme == "smtps" else 587)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return f"{parts.scheme}://{host}:{port}"
