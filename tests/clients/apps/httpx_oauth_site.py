"""A web app that signs its users in with httpx-oauth, as in its documentation."""

import asyncio
import os
from typing import Any
from urllib.parse import parse_qs, urlsplit

from httpx_oauth.clients.openid import OpenID
from two_routes import CALLBACK, HUB, SCOPES, serve

client = OpenID(os.environ["CLIENT_ID"], os.environ["CLIENT_SECRET"], f"{HUB}/.well-known/openid-configuration")


def login() -> str:
    return asyncio.run(client.get_authorization_url(CALLBACK, state="here", scope=SCOPES))


def callback(address: str) -> dict[str, Any]:
    return asyncio.run(signed_in(parse_qs(urlsplit(address).query)["code"][0]))


async def signed_in(code: str) -> dict[str, Any]:
    token = await client.get_access_token(code, CALLBACK)
    sub, email = await client.get_id_email(token["access_token"])
    refreshed = await client.refresh_token(token["refresh_token"])
    await client.revoke_token(refreshed["refresh_token"], "refresh_token")
    return {"token": token, "sub": sub, "email": email, "refreshed": refreshed}


serve(login, callback)
