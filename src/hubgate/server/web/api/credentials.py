"""`POST /api/credentials/revoke`: anyone who finds leaked tokens can revoke them, without an account."""

from typing import Annotated

import msgspec

from hubgate.server.accounts.context import Accounts
from hubgate.server.accounts.tokens import personal
from hubgate.server.edge.routes import KIB, Route, public
from hubgate.server.http.request import HubRequest
from hubgate.server.http.responses import Response
from hubgate.server.http.surface import Surface

MAX_AT_ONCE = 1000


class LeakedCredentials(msgspec.Struct, forbid_unknown_fields=True):
    credentials: Annotated[list[str], msgspec.Meta(max_length=MAX_AT_ONCE)]


def routes(accounts: Accounts) -> list[Route]:
    async def revoke(request: HubRequest) -> Response:
        leaked = await request.read_json(LeakedCredentials)
        await personal.revoke_leaked(accounts, leaked.credentials)
        return Response(status_code=202)

    return [
        Route(
            "POST",
            "/api/credentials/revoke",
            public(revoke),
            Surface.API,
            "Report tokens that leaked, so that they stop working",
            body=LeakedCredentials,
            answers={202: ("Accepted. Valid tokens are revoked, and their owners are notified.", None)},
            body_cap=256 * KIB,
        )
    ]
