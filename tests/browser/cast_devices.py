"""Devices of the stage that wait for their users: an app's, started elsewhere, and a command line's."""

from tests.browser.cast_apps import ATLAS

from hubgate.server.accounts.tokens.text import TokenKind, new_token
from hubgate.server.clock import DAY, MINUTE
from hubgate.server.oauth.apps.lookup import find_app
from hubgate.server.oauth.device import store
from hubgate.server.oauth.device.model import INTERVAL_SECONDS, PENDING, DeviceCode
from hubgate.server.oauth.device.user_code import user_code_mac
from hubgate.server.oauth.requested_scopes import scopes_of
from hubgate.server.resources import Hub
from hubgate.server.scopes import join_scopes

OF_APP, OF_COMMAND_LINE = "WDJB-MJHT", "BCDF-GHJK"


async def add_devices(hub: Hub) -> None:
    await _wait(hub, OF_APP, ATLAS, "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff")
    await _wait(hub, OF_COMMAND_LINE, hub.settings.cli_client_ids[0], "127.0.0.1")


async def _wait(hub: Hub, user_code: str, client_id: str, ip: str) -> None:
    app = await find_app(hub.oauth, client_id, caller=ip)
    assert app is not None
    begun = hub.clock() - 3 * MINUTE
    code = DeviceCode(
        key=new_token(TokenKind.DEVICE, begun)[1],
        user_code=user_code_mac(user_code, hub.secret),
        client_id=client_id,
        app_id=client_id if app.is_registered else None,
        scopes=join_scopes(scopes_of(hub.oauth, app)),
        state=PENDING,
        user_id=None,
        consent_id=None,
        auth_time=None,
        interval=INTERVAL_SECONDS,
        polled_at=None,
        ip=ip,
        user_agent="stage",
        created_at=begun,
        # For as long as the stage runs.
        expires_at=begun + DAY,
        resources="",
    )
    assert await store.add(hub.db, code)
