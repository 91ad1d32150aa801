"""A program without a browser that signs its user in with requests-oauthlib."""

import json
import os

import requests
from oauthlib.oauth2 import DeviceClient
from requests_oauthlib import OAuth2Session

os.environ["OAUTHLIB_INSECURE_TRANSPORT"] = "1"
HUB, CLIENT_ID, SECRET = os.environ["HUB"], os.environ["CLIENT_ID"], os.environ["CLIENT_SECRET"]
proof = requests.auth.HTTPBasicAuth(CLIENT_ID, SECRET) if SECRET else None
device = requests.post(f"{HUB}/oauth/device", data={"client_id": CLIENT_ID}, auth=proof, timeout=60).json()
print(f"Open {device['verification_uri_complete']} and compare the code {device['user_code']}")
input()
session = OAuth2Session(client=DeviceClient(CLIENT_ID))
token = session.fetch_token(
    f"{HUB}/oauth/token", device_code=device["device_code"], auth=proof, include_client_id=not SECRET
)
print(json.dumps({"token": token, "userinfo": session.get(f"{HUB}/oauth/userinfo").json()}))
