"""A program without a browser that signs its user in with Authlib."""

import json
import os

from authlib.integrations.base_client import OAuthError
from authlib.integrations.httpx_client import OAuth2Client

HUB, SECRET = os.environ["HUB"], os.environ["CLIENT_SECRET"]
GRANT = "urn:ietf:params:oauth:grant-type:device_code"
with OAuth2Client(
    os.environ["CLIENT_ID"],
    SECRET or None,
    token_endpoint_auth_method="client_secret_basic" if SECRET else "none",
) as client:
    asked = {"client_id": os.environ["CLIENT_ID"]}
    basic = (os.environ["CLIENT_ID"], SECRET) if SECRET else None
    device = client.request("POST", f"{HUB}/oauth/device", data=asked, auth=basic, withhold_token=True).json()
    print(f"Open {device['verification_uri_complete']} and compare the code {device['user_code']}")
    try:
        client.fetch_token(f"{HUB}/oauth/token", grant_type=GRANT, device_code=device["device_code"])
    except OAuthError as error:
        print(f"Not yet: {error.error}")
    input()
    token = client.fetch_token(f"{HUB}/oauth/token", grant_type=GRANT, device_code=device["device_code"])
    print(json.dumps({"token": token, "userinfo": client.get(f"{HUB}/oauth/userinfo").json()}))
