"""The account as one JSON file to take away."""

import msgspec
from starlette.responses import Response

from hubgate.server.access.actions import Action
from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.export import export
from hubgate.server.http.request import HubRequest
from hubgate.server.http.routes import Route
from hubgate.server.http.surface import Surface
from hubgate.server.web.own_account import require_own

PATH = "/settings/export"
_ACTION = Action.ACCOUNT_READ_SETTINGS


def routes(accounts: Accounts) -> list[Route]:
    async def download(request: HubRequest) -> Response:
        person = require_own(request, _ACTION).signed_in
        text = msgspec.json.format(msgspec.json.encode(await export(accounts, person)), indent=2)
        # A name is ASCII without quotes, so it needs no escaping here.
        headers = {"content-disposition": f'attachment; filename="{person.user.name}.json"'}
        return Response(text, media_type="application/json", headers=headers)

    return [Route("GET", PATH, download, Surface.PAGE, _ACTION.rule.name, "All that is kept about you, as JSON")]
